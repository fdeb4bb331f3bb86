"""The reference as an implementation of the protocol: what every answer is compared with, with the rules that fired."""

import re
from dataclasses import dataclass

import numpy as np

import quantspec
from quantspec import Quantized, QuantspecError, Trace
from quantspec.recipes import CANONICAL, CODECS, CONTAINERS, RECIPES
from quantspec.rounding import widen

from .. import steps
from ..examples import Entry, Example, ExampleError, Tensor
from ..protocol.messages import OPERATIONS, Answer, Failed, Hello, Identity, Ok, Rejected, Request, Unsupported
from ..state import State
from ..verbs import VERBS

__all__ = ["OUTPUTS", "Law", "Told", "tell"]

_SCALES = ("scale_codes", "tensor_scale_code")
_QUANTIZED = ("codes", *_SCALES)
#: Operation -> tensors and words of its answer; scale codes only of levels that the scheme has.
OUTPUTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "encode": (("codes",), ()),
    "decode": (("y",), ()),
    "encode_scale": (("scale_codes",), ()),
    "decode_scale": (("y",), ()),
    "quantize": (_QUANTIZED, ("saturated",)),
    "dequantize": (("y",), ()),
    "pack": (("words",), ()),
    "unpack": (("codes",), ()),
    "to_bytes": (("bytes",), ()),
    "split": (_QUANTIZED, ()),
    "requantize": (_QUANTIZED, ()),
    "repack": ((*_QUANTIZED, "words"), ("text",)),
    "chain": (("y",), ()),
    "product": (("y",), ()),
    "product_codes": (("y",), ()),
    "scheme": ((), ("text",)),
    "to_burn": ((), ("burn",)),
    "size": ((), ("size",)),
    **dict.fromkeys(
        ("permute", "slice", "take", "select", "flip", "expand", "concatenate", "reshape"), (_QUANTIZED, ("text",))
    ),
}
_ARGUMENT = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Told:
    """The law's answer, the rules that fired (also by element, through the trace), and the quantities in between."""

    answer: Answer
    rules: tuple[str, ...]
    trace: Trace
    intermediates: dict[str, Tensor]


def example_of(request: Request, case_id: str = "") -> Example:
    """A request as an example without results."""
    given = {name: Entry(word) for name, word in request.words.items()}
    given |= {name: Entry(tensor) for name, tensor in request.tensors.items()}
    return Example(case_id or request.op, "", (), (request.op,), given, {})


def tell(request: Request, *, intermediates: bool = False) -> Told:
    """What the law says to a request."""
    if request.op == "echo":
        return Told(Ok(dict(request.tensors)), (), Trace(), {})
    if request.op not in OUTPUTS:
        return Told(Unsupported(request.op, "no such operation"), (), Trace(), {})
    state = State(example_of(request))
    trace = Trace()
    refused: Rejected | None = None
    with np.errstate(all="ignore"):
        try:
            with quantspec.trace() as trace:
                VERBS[request.op](state)
        except QuantspecError as error:
            refused = rejection(error)
        except (ExampleError, ValueError) as error:
            return Told(Failed(str(error)), (), trace, {})
        rules = dict.fromkeys(trace.rules())
        if refused is not None:
            return Told(refused, tuple(dict.fromkeys([*rules, refused.rule])), trace, {})
        between = _between(state, request) if intermediates else {}
    return Told(_answer(request.op, state), tuple(rules), trace, between)


def rejection(error: QuantspecError) -> Rejected:
    """A refusal of the reference as an answer: its message begins with the argument."""
    argument = _ARGUMENT.match(error.message)
    kind = type(error).__name__.removesuffix("Error").lower()
    return Rejected(kind, error.rule, argument[0] if argument else "", error.message)


def _answer(op: str, state: State) -> Ok:
    tensors, words = OUTPUTS[op]
    found = {name: Tensor.of(np.asarray(state.made[name])) for name in tensors if name in state.made}
    return Ok(found, {name: steps.words_of(name, state.tensor, state.made) for name in words})


def _between(state: State, request: Request) -> dict[str, Tensor]:
    """Every quantity between input and result that the operation has; steps of another recipe have names of their own."""
    tensor = state.tensor
    known = isinstance(tensor, Quantized) and tensor.recipe == CANONICAL
    if not isinstance(tensor, Quantized) or not known or request.op not in ("quantize", "dequantize"):
        return {}
    bits = widen(request.tensors["x"].array()) if request.op == "quantize" else None
    names = ["s", "v"] if bits is None else [*steps.STEPS]
    scheme = tensor.scheme
    if scheme.block is None or scheme.tensor is None:
        names = [name for name in names if name not in ("bounded", "u", "g", "b")]
    return {name: Tensor.of(np.asarray(steps.STEPS[name](tensor, bits))) for name in names}


class Law:
    """The reference behind the protocol."""

    def hello(self, hello: Hello) -> Identity:
        """The reference's name and version; it does everything."""
        return Identity(
            name="reference",
            version=quantspec.__version__,
            language="Python",
            device=f"numpy {np.__version__}",
            ops=OPERATIONS,
            policies={"recipe": ",".join(RECIPES), "codec": ",".join(CODECS), "container": ",".join(CONTAINERS)},
        )

    def handle(self, request: Request) -> Answer:
        """What the law says."""
        return tell(request).answer

    def close(self) -> None:
        """Nothing to let go of."""
