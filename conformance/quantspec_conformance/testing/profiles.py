"""Profiles: named lists of the cases that must pass for a claim. Rule CNF-5: what is not implemented is no pass.

ggml-legacy is none of them: ggml rounds the scale to nearest, halves away from zero, multiplies by reciprocals and puts the
scale before the values of each block. Q8_0 and Q4_0 are other bits than any scheme here, so no case could stand for them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from quantspec import SCALES, VALUES, QuantspecError, Scheme

from ..errors import UsageError
from ..outside import printable
from ..suite.case import Case
from ..suite.outcome import CaseResult
from .source import load_cases

__all__ = ["PROFILES", "Profile", "met"]

#: Operations from numbers to bytes and back; layout operations are claimed with `full` only.
FLOW = ("quantize", "dequantize", "pack", "unpack", "to_bytes", "split")
CODEC = ("encode", "decode", "encode_scale", "decode_scale")
DECODING = ("decode", "decode_scale", "dequantize", "unpack", "split")
MX_VALUES = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
FP8_VALUES = ("e4m3", "e5m2")
#: Reasons that a claim fails for, listed one by one up to this many.
LISTED = 10


@dataclass(frozen=True, slots=True)
class Profile:
    """A name, what it stands for, and which cases it lists.

    `holds` is exact. `expression` is for `--select`: the language has no block sizes, so it may select more, never less.
    """

    name: str
    title: str
    expression: str
    holds: Callable[[Case], bool]


def _only(values: Iterable[str], scales: Iterable[str]) -> str:
    """The expression of the codec and the flow with no value format and scale type but these."""
    others = [
        ",".join(name for name in table if name not in kept) for table, kept in ((VALUES, values), (SCALES, scales))
    ]
    return f"op:{','.join((*CODEC, *FLOW))} -mode:lookup -value:{others[0]} -scale:{others[1]}"


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Scheme | None:
    try:
        return Scheme.parse(text)
    except QuantspecError:
        return None


def _scheme(case: Case) -> Scheme | None:
    """The scheme of a case of the flow; None for another operation, a lookup scheme, and a text that names none."""
    return _parsed(case.words["scheme"]) if case.op in FLOW and "scheme" in case.words else None


def _codec(case: Case, values: Iterable[str], scales: Iterable[str]) -> bool:
    """True for numbers to codes and back of these formats."""
    if case.op in ("encode", "decode"):
        return case.words.get("value") in tuple(values) and "table" not in case.inputs
    return case.op in ("encode_scale", "decode_scale") and case.words.get("type") in tuple(scales)


def _core_decode(case: Case) -> bool:
    return case.op in DECODING


def _ocp_mx(case: Case) -> bool:
    """OCP MX 1.0 leaves the choice of a scale open: quantize counts where the scale codes are given."""
    if _codec(case, MX_VALUES, ("ue8m0",)):
        return True
    scheme = _scheme(case)
    if scheme is None or scheme.block is None or scheme.tensor is not None or scheme.value.name not in MX_VALUES:
        return False
    fits = scheme.block.extents == (32,) and scheme.block.scale.name == "ue8m0"
    return fits and (case.op != "quantize" or "scale_codes" in case.inputs)


def _nvfp4(case: Case) -> bool:
    if _codec(case, ("e2m1",), ("ue4m3",)):
        return True
    scheme = _scheme(case)
    if scheme is None or scheme.block is None or scheme.tensor is None or scheme.value.name != "e2m1":
        return False
    block = scheme.block
    return (block.extents, block.scale.name, scheme.tensor.name) == ((16,), "ue4m3", "f32")


def _fp8_scaled(case: Case) -> bool:
    if _codec(case, FP8_VALUES, ("f32",)):
        return True
    scheme = _scheme(case)
    if scheme is None or scheme.value.name not in FP8_VALUES:
        return False
    levels = [row for row in (scheme.tensor, None if scheme.block is None else scheme.block.scale) if row is not None]
    return [row.name for row in levels] == ["f32"]


def _full(case: Case) -> bool:
    return True


_ROWS = (
    Profile("core-decode", "Every format, scale type and store is read: codes to numbers, words and bytes to codes.",
            f"op:{','.join(DECODING)}", _core_decode),
    Profile("ocp-mx-1.0", "MXFP8, MXFP6 and MXFP4 of OCP MX 1.0: blocks of 32 with ue8m0 scales, scales as given. MXINT8 has a "
            "point inside its integers and is no scheme here.", _only(MX_VALUES, ("ue8m0",)), _ocp_mx),
    Profile("nvfp4", "e2m1 in blocks of 16 with ue4m3 scales, and one f32 scale for the tensor.",
            _only(("e2m1",), ("ue4m3", "f32")), _nvfp4),
    Profile("fp8-scaled", "e4m3 and e5m2 with f32 scales, one a tensor or one a block.", _only(FP8_VALUES, ("f32",)), _fp8_scaled),
    Profile("full", "Every case.", "", _full),
)  # fmt: skip

#: Every profile by name.
PROFILES = {row.name: row for row in _ROWS}


def met(
    profile: str | Profile, results: Mapping[str, CaseResult], *, cases: Iterable[Case] | None = None
) -> tuple[bool, tuple[str, ...]]:
    """Whether a claim of the profile holds: every listed MUST case passed. The reasons say what did not, and how the
    SHOULD cases came out. `cases` are those that were to run, all shipped ones unless given. UsageError for an unknown name.
    """
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise UsageError(f"{printable(profile)[:80]!r} is no profile; there are {', '.join(PROFILES)}")
        profile = PROFILES[profile]
    listed = [case for case in (load_cases(2) if cases is None else cases) if profile.holds(case)]
    must = [case for case in listed if case.strength != "SHOULD"]
    missed = [(case.id, _outcome(results, case)) for case in must if _outcome(results, case) != "pass"]
    reasons = [f"{case_id}: {outcome}" for case_id, outcome in missed[:LISTED]]
    if len(missed) > LISTED:
        reasons.append(f"and {len(missed) - LISTED} more of {len(must)} cases")
    if not must:
        reasons.append("the profile lists no case")
    should = [case for case in listed if case.strength == "SHOULD"]
    if should:
        passed = sum(_outcome(results, case) == "pass" for case in should)
        reasons.append(f"SHOULD, not part of the claim: {passed} of {len(should)} cases pass")
    return bool(must) and not missed, tuple(reasons)


def _outcome(results: Mapping[str, CaseResult], case: Case) -> str:
    found = results.get(case.id)
    return "notrun" if found is None else found.outcome
