"""Models: the rows of the check as data. Each is a runtime, or a build of it that plays a device which does less.

The facts are measured: which runtime really flushes, divides to 2.5 ulp or fuses under which option or variable. A model
whose runtime ignores the option is no model, so each says what must be measured for it to be played.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CHECKERS", "MODELS", "Kind", "Model"]

Kind = Literal["suite", "memory", "offline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One row: what is run where, with which variables and build options, and what must then be measured."""

    name: str
    kind: Kind
    place: str  #: of `PLACES`, or of `TARGETS` for an offline row
    plays: str  #: the device that the row stands for
    variables: Mapping[str, str] = field(default_factory=dict)
    build_options: tuple[str, ...] = ()
    expects: Mapping[str, bool] = field(default_factory=dict)  #: a line of the self-test to whether it must be ok
    quick: tuple[str, ...] = ("--quick",)  #: the suite's words on a quick check
    full: tuple[str, ...] = ()  #: and on a full one
    checks: str = ""  #: of `CHECKERS`, for a memory row


FLUSHES = {"subnormal results are kept": False}
SLOPPY = {"quotients are correctly rounded": False}
FUSES = "a * b + c is not contracted (default)"

#: Of Oclgrind in every row: with threads of its own it once crashed and once answered wrongly on a busy machine, and it is
#: slower; its default stops reporting after some errors.
SIMULATOR = {"OCLGRIND_NUM_THREADS": "1", "OCLGRIND_MAX_ERRORS": "20000"}

#: What a memory row looks for: Oclgrind's variables, the kinds of message that canaries must bring, and the paths of kernels that
#: run. Of what was written Oclgrind 21.10 loses sight where vectors are joined: `(uint8)(a.lo, b.lo)` of two that were loaded
#: counts as never written, and `y[0].lo = x` ends the process. So the fast kernels, all of vectors, are left to the other row.
CHECKERS: dict[str, tuple[Mapping[str, str], tuple[str, ...], tuple[str, ...]]] = {
    "memory": ({"OCLGRIND_DATA_RACES": "1", **SIMULATOR}, ("race", "bounds"), ("generic", "fast")),
    "uninitialised": ({"OCLGRIND_UNINITIALIZED": "1", **SIMULATOR}, ("uninitialised", "bounds"), ("generic",)),
}

MODELS: tuple[Model, ...] = (
    Model(name="pocl", kind="suite", place="pocl", plays="PoCL of pip"),
    Model(name="pocl-debian", kind="suite", place="pocl-debian", plays="PoCL of Debian"),
    Model(name="intel", kind="suite", place="intel", plays="Intel's CPU runtime of pip", expects={FUSES: False}),
    Model(
        name="rusticl", kind="suite", place="rusticl", plays="no fp64, no fma: rusticl on llvmpipe",
        quick=("--quick", "--timeout", "300"), full=("--timeout", "300"),
    ),
    Model(
        name="flush-to-zero", kind="suite", place="pocl", plays="a device without subnormals",
        build_options=("-cl-denorms-are-zero",), expects=FLUSHES,
    ),
    Model(
        name="flush-to-zero-intel", kind="suite", place="intel", plays="a device without subnormals",
        build_options=("-cl-denorms-are-zero",), expects=FLUSHES,
    ),
    Model(
        name="sloppy-division", kind="suite", place="pocl", plays="a device that divides to 2.5 ulp",
        build_options=("-cl-fast-relaxed-math",), expects=SLOPPY,
    ),
    Model(
        name="sloppy-division-intel", kind="suite", place="intel", plays="a device that divides to 2.5 ulp",
        build_options=("-cl-fast-relaxed-math",), expects=SLOPPY,
    ),
    Model(
        name="no-fusing", kind="suite", place="intel", plays="a device that never contracts a * b + c",
        variables={"CL_CONFIG_CPU_TARGET_ARCH": "corei7"}, expects={FUSES: True},
    ),
    Model(
        name="unoptimised", kind="suite", place="pocl", plays="a compiler that optimises nothing",
        build_options=("-cl-opt-disable",),
    ),
    Model(name="oclgrind", kind="memory", place="oclgrind", plays="data races and bounds", checks="memory"),
    Model(
        name="oclgrind-uninitialised", kind="memory", place="oclgrind", plays="reads of what nobody wrote",
        checks="uninitialised",
    ),
    Model(name="spirv", kind="offline", place="spirv", plays="SPIR-V 1.2, validated"),
    *(
        Model(name=f"amd-{chip}", kind="offline", place=chip, plays="an AMD GPU's compiler")
        for chip in ("gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201")
    ),
    *(
        Model(name=f"nvidia-{chip}", kind="offline", place=chip, plays="an NVIDIA GPU's compiler and assembler")
        for chip in ("sm_60", "sm_75", "sm_86", "sm_90")
    ),
)  # fmt: skip
