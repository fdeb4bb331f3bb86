"""Layout operations: the reference's result or its refusal, for codes and for words, of every store and rank. OPS-1 to OPS-13."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_bits, same_error
from .steps import SHAPES, same_made, same_step, schemes, steps, with_scale_of
from .test_packing import VALUES, spoiled, tensor

pytestmark = pytest.mark.opencl


@pytest.mark.parametrize("value", VALUES)
def test_every_operation_on_every_store(session: qc.Session, value: str) -> None:
    done: set[str] = set()
    for number, shape in enumerate(SHAPES):
        every = schemes(value, shape)
        for scheme in every if number % 4 == VALUES.index(value) % 4 else every[number % 4 :: 4]:
            q = tensor(scheme, shape, number)
            for verb, *arguments in steps(q)[VALUES.index(value) % 2 :: 2]:
                if same_step(session, q, verb, *arguments) is not None:
                    done.add(verb)
    assert done == {"permute", "transpose", "slice_axis", "take", "select", "flip", "expand", "reshape", "repack"}


@pytest.mark.parametrize("store", ["native", "packed_native_0", "packed_native_1", "packed_u32_0", "packed_u32_1"])
def test_parts_are_joined_inside_words(session: qc.Session, store: str) -> None:
    """Parts of every length along either axis: words begun by one part are finished by the next."""
    for number, (value, level) in enumerate(
        itertools.product(("q4s", "q2f", "e3m2", "e4m3"), ("t-f32", "b2x1-f16.t-f32"))
    ):
        scheme = qs.Scheme.parse(f"{value}.{store}.{level}")
        first = tensor(scheme, (6, 8), number)
        for axis, sizes in itertools.product((0, 1), ((1, 2), (2, 0, 4, 3), (0, 3), (8, 16))):
            shapes = [(size, 8) if axis == 0 else (6, size) for size in sizes]
            parts = [first, *(with_scale_of(first, tensor(scheme, shape, 7)) for shape in shapes)]
            same_step(session, parts, "concatenate", axis)
            same_step(session, parts[::-1], "concatenate", axis - 2)
    assert same_step(session, [tensor(qs.Scheme.parse("q4s.packed_u32_1.b2-f16"), (0, 3))] * 2, "concatenate", 1)


def test_parts_that_do_not_fit_are_refused(session: qc.Session) -> None:
    q = tensor(qs.Scheme.parse("q4s.packed_u32_0.b2-f16.t-f32"), (3, 5), 1)
    other = tensor(q.scheme, (3, 5), 2)
    for parts, axis in (
        *(([q, other], 0), ([q, q], 1), ([q, tensor(q.scheme, (3, 4))], 0), ([q, tensor(q.scheme, (1, 3, 5))], 0)),
        *(([q, qs.repack(q, "native")], 0), ([q], 2), ([q, with_scale_of(q, tensor(q.scheme, (3, 0))), other], 0)),
    ):
        assert same_step(session, parts, "concatenate", axis) is None
    wrongs: tuple[list[Any], ...] = ([], [q, None], [q, 5])
    for wrong in wrongs:
        same_error(partial(session.concatenate, wrong), partial(qs.concatenate, wrong))
    mixtures: tuple[list[Any], ...] = ([q, session.pack(q)], [session.pack(q), q])
    for mixed in mixtures:
        with pytest.raises(qs.QuantspecError, match=r"parts\[1\].*QNT-12"):
            session.concatenate(mixed)


@pytest.mark.parametrize("wrong", [None, 5, b"12", np.zeros(4, np.uint8)])
def test_what_is_no_record_is_refused(session: qc.Session, wrong: Any) -> None:
    for verb, arguments in (("flip", (0,)), ("repack", ("native",)), ("reshape", ((4,),)), ("select", (0, 0))):
        same_error(partial(getattr(session, verb), wrong, *arguments), partial(getattr(qs, verb), wrong, *arguments))


def test_requantize_is_dequantize_and_quantize(session: qc.Session) -> None:
    q = qs.quantize(np.linspace(-3, 5, 96, dtype=np.float32).reshape(3, 32), "q8s.packed_u32_0.b16-f16")
    for text in ("e2m1.packed_native_0.b16-ue4m3.t-f32", "q4s.packed_u32_1.b2x4-f16"):
        expected = qs.requantize(q, text)
        found = session.requantize(session.put(q), text), session.requantize(session.pack(q), text)
        same_bits(found[0].codes, expected.codes, text)
        same_bits(found[0].scale_codes, expected.scale_codes, text)
        same_bits(found[1].words, qs.pack(expected).words, text)
    same_error(partial(session.requantize, q, "q4s.packed_u32_2"), partial(qs.requantize, q, "q4s.packed_u32_2"))


DIRTY = ("q4s.packed_u32_0.t-f32", "e2m3.packed_native_1.t-f32", "q2s.packed_native_0.t-f32", "e3m2.packed_u32_0.t-f32")


@pytest.mark.parametrize("text", DIRTY)
def test_dirty_words_are_refused_or_come_out_clean(session: qc.Session, text: str) -> None:
    scheme = qs.Scheme.parse(text)
    packed = qs.pack(tensor(scheme, (7, 7)))
    given = spoiled(packed, 3, packed.words.shape[-1] - 1, 8 * scheme.store.word_bytes(scheme.value.bits) - 1)
    clean = qs.unpack(given, padding="ignore")
    for verb, *arguments in (
        *(("transpose", 0, 1), ("flip", 0), ("slice_axis", 0, 2, 5), ("reshape", (1, 7, 7)), ("reshape", (49,))),
        *(("repack", "native"), ("repack", text.split(".")[1]), ("take", 1, (6, 0)), ("expand", (2, 7, 7))),
    ):
        call = getattr(session, verb)
        same_error(partial(call, given, *arguments), partial(qs.unpack, given))
        same_made(call(given, *arguments, padding="ignore"), qs.pack(getattr(qs, verb)(clean, *arguments)), verb)
        same_error(partial(call, given, *arguments, padding="drop"), partial(qs.unpack, given, padding="drop"))  # type: ignore[arg-type]
    same_made(session.concatenate([given, given], padding="ignore"), qs.pack(qs.concatenate([clean, clean])), text)
