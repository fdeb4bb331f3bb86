"""The worked examples of the spec, played on the device: the verbs that kernels have, the refusals among them."""

from typing import TYPE_CHECKING, Any

import pytest

from quantspec_conformance.examples import Example, examples
from quantspec_conformance.playback import problems

from .conftest import opened

if TYPE_CHECKING:
    import quantspec_cl as qc

pytestmark = pytest.mark.opencl

VERBS = {
    "encode", "decode", "encode_scale", "decode_scale", "quantize", "dequantize", "pack", "unpack", "to_bytes", "from_bytes",
    "split", "permute", "transpose", "slice", "slice_axis", "take", "select", "flip", "expand", "reshape", "concatenate",
    "repack", "requantize",
}  # fmt: skip
PLAYED = {row.id: row for row in examples().values() if row.canonical and VERBS.issuperset(row.do)}


class OnDevice:
    """The verbs of a session, with results on the host."""

    def __init__(self, session: "qc.Session", lie: str = "") -> None:
        self.session, self.lie = session, lie

    def __getattr__(self, name: str) -> Any:
        if name not in VERBS:
            raise AttributeError(name)

        def call(*arguments: Any, **options: Any) -> Any:
            if self.lie == name:
                arguments = (-arguments[0], *arguments[1:])
            result = getattr(self.session, name)(*arguments, **options).get()
            return result.tobytes() if name == "to_bytes" else result

        return call


@pytest.mark.parametrize("example", PLAYED.values(), ids=PLAYED)
def test_the_device_gives_what_the_example_says(example: Example) -> None:
    assert problems(example, OnDevice(opened())) == []


@pytest.mark.parametrize("verb", ["encode", "quantize"])
def test_a_device_that_turns_the_sign_is_found(verb: str) -> None:
    found = [
        example for example in PLAYED.values() if verb in example.do and problems(example, OnDevice(opened(), verb))
    ]
    assert len(found) > 10
