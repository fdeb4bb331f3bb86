"""One implementation, format by format."""

from collections.abc import Callable, Iterator, Sequence

from quantspec import Scheme

from ..protocol.messages import Answer, Hello, Identity, Implementation, Request, Unsupported
from ..suite.case import Case, features_of, lacking
from .asking import Asking, Budget, Lacking, under, wire
from .containing import identify_container
from .decoding import identify_decode
from .encoding import identify_encode
from .judging import judge
from .layout import Layout
from .quantizing import Quantizing
from .verdict import EXCEPT, IDENTIFIED, LACKING, NONE, Found, PartFound

__all__ = ["FORMATS", "identify"]

#: Outcomes that a further part can make worse, in that order.
WORSE = (LACKING, IDENTIFIED, EXCEPT, NONE)
#: What is asked where no format is named: block formats of MX, NVFP4, ggml, integers of a tensor.
FORMATS = (
    "e2m1.packed_native_0.b32-ue8m0", "e4m3.native.b32-ue8m0", "e5m2.native.b32-ue8m0", "e3m2.native.b32-ue8m0",
    "e2m3.native.b32-ue8m0", "e2m1.packed_native_0.b16-ue4m3.t-f32", "e2m1.packed_native_0.b16-ue4m3", "q8s.native.b32-f16",
    "q4f.packed_native_0.b32-f16", "q8f.native.b32-f32", "q4f.packed_native_0.b32-f32", "q8s.native.t-f32",
    "q8f.native.t-f32",
    "q4f.packed_native_0.lut-nf4.b64-f32",
)  # fmt: skip


def identify(
    implementation: Implementation,
    formats: Sequence[Scheme | str] = (),
    *,
    max_blocks: int = 2000,
    seed: int = 0,
    recipe: str = "",
) -> Iterator[Found]:
    """What an implementation realises, a verdict a format, as they are found. ImplementationError where it says no hello.

    `recipe`: a name that the requests give, where an implementation has more than one way; what it then does is found as ever.
    """
    identity = implementation.hello(Hello())
    for scheme in map(Scheme.of, formats or FORMATS):
        yield _format(
            implementation, identity, scheme if formats else _offered(identity, scheme), max_blocks, seed, recipe
        )


def _offered(identity: Identity, scheme: Scheme) -> Scheme:
    """The scheme, or the same one in the native store, where only that is offered."""
    native = Scheme(
        scheme.value, "native", mode=scheme.mode, tensor=scheme.tensor, block=scheme.block, table=scheme.table
    )
    return scheme if not identity.stores or scheme.store.kind in identity.stores else native


class _Offered:
    """An implementation that says itself what it lacks, without being asked."""

    def __init__(self, implementation: Implementation, identity: Identity) -> None:
        self._implementation, self._identity = implementation, identity

    def hello(self, hello: Hello) -> Identity:
        """Who it is."""
        return self._identity

    def handle(self, request: Request) -> Answer:
        """Handed on where it is offered."""
        if not _offers(self._identity, request):
            return Unsupported("not offered")
        return self._implementation.handle(request)

    def close(self) -> None:
        """Nothing: whoever opened it closes it."""


def _offers(identity: Identity, request: Request) -> bool:
    """True where the identity lists all that a request needs."""
    case = Case(id="x.x.x", title="", op=request.op, level=0, inputs=request.tensors, features=features_of(request))
    return not lacking(case, identity)


def _unsupported(op: str, why: str) -> str:
    """What was said of an operation that the identity lists; a feature that only names it again says nothing."""
    said = why.strip().strip(":")
    return f"{op} is answered unsupported" + (
        f": {why}" if said not in ("", op) else ", without saying what is lacking"
    )


def _format(
    implementation: Implementation, identity: Identity, scheme: Scheme, max_blocks: int, seed: int, recipe: str
) -> Found:
    layout, budget = Layout(scheme), Budget(max_blocks)
    found = Found(scheme.text, LACKING)
    sample = wire(layout.tensor(Quantizing.sample(layout)), "f32")
    if _offers(identity, Request("quantize", {"scheme": scheme.text, **under(recipe)}, {"x": sample})):
        search = Quantizing(Asking(implementation, layout, budget, largest=identity.max_elements, named=recipe), seed)
        try:
            search.run()
            found = judge(search)
        except Lacking as error:
            found.notes.append(_unsupported("quantize", str(error)))
    others: dict[str, Callable[..., PartFound | None]] = {
        "encode": identify_encode,
        "dequantize": identify_decode,
        "pack": identify_container,
        "to_bytes": identify_container,
    }
    for op, ask in others.items():
        if identity.ops and op not in identity.ops:
            continue
        part = ask(_Offered(implementation, identity), layout, budget, op, recipe)
        if part is not None:
            found.parts.append(part)
            if found.outcome in WORSE:
                found.outcome = max(found.outcome, part.outcome, key=WORSE.index)
    if found.parts and found.parts[0].part in others and not found.notes:
        found.notes.append("quantize is not offered: nothing is known of recipes")
    found.asked_as = recipe
    found.blocks, found.requests = budget.used, budget.requests
    return found
