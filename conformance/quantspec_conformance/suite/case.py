"""A case: one request with the answer that the law gives to it, and everything that selects and explains it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from quantspec import STORES, QuantspecError, Scheme
from quantspec.recipes import CODECS, CONTAINERS, RECIPES

from ..examples import Tensor
from ..protocol.messages import Identity, Request

__all__ = ["BUGS", "CASE_ID", "KINDS", "LEVELS", "Case", "Refusal", "features_of", "lacking", "policies_of"]

#: op.format.suite.words: three parts that say where it belongs, one that names it. Ids are never reused.
CASE_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+(-[a-z0-9_]+)*){2,5}")
#: 0: a first look, by hand; 1: every boundary and pairwise combinations; 2: large and random.
LEVELS = (0, 1, 2)
KINDS = ("positive", "negative", "control")
#: What a case hunts.
BUGS = (
    "tie", "off-by-one-bias", "subnormal", "sat-vs-inf", "nan-code", "neg-zero", "scale-underflow", "scale-overflow",
    "scale-rounding", "partial-block", "axis", "nibble-order", "word-order", "padding", "double-rounding", "reciprocal", "ftz",
    "block-index", "decode-order", "endianness", "length", "extension", "lookup", "zero-block", "refusal", "dtype",
    "contraction", "accumulation",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal that is expected: the kind of fault, the rule that refuses, the argument at fault ("" if none stands out)."""

    kind: str
    rule: str
    argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case. Either `outputs` (with words) or `refusal` is expected; a negative case names its `control`, which is accepted."""

    id: str
    title: str
    op: str
    level: int
    kind: str = "positive"
    strength: str = "MUST"
    words: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    outputs: Mapping[str, Tensor] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)  #: words of the answer
    equal: Mapping[str, str] = field(default_factory=dict)  #: relation of each output; `bits` for all of them so far
    intermediates: Mapping[str, Tensor] = field(default_factory=dict)
    refusal: Refusal | None = None
    control: str = ""
    rules: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    provenance: str = ""
    suite: str = ""  #: format/op/suite, the file it is in

    @property
    def request(self) -> Request:
        """What an implementation is asked."""
        return Request(self.op, self.words, self.inputs)

    @property
    def policies(self) -> dict[str, str]:
        """The recipe, codec and container other than the canonical ones that the request is under."""
        return policies_of(self.words)

    @property
    def elements(self) -> int:
        """Elements of the largest tensor."""
        return max((len(t.patterns) for t in [*self.inputs.values(), *self.outputs.values()]), default=0)


#: Axis -> every name that it has; the first is canonical.
_POLICIES: dict[str, tuple[str, ...]] = {"recipe": (*RECIPES,), "codec": (*CODECS,), "container": (*CONTAINERS,)}


def policies_of(words: Mapping[str, str]) -> dict[str, str]:
    """Axis -> the row other than canonical that words name. A name without a row is a policy of nobody."""
    return {axis: words[axis] for axis, names in _POLICIES.items() if words.get(axis) in names[1:]}


#: Operation -> the words that name its schemes, where that is not `scheme` alone.
_SCHEMES: dict[str, tuple[str, ...]] = {"product_codes": ("scheme", "scheme_2")}


def features_of(request: Request) -> tuple[str, ...]:
    """What an implementation needs for a request: `op:encode`, `value:e2m1`, `store:packed_u32`, `level:both`, ..."""
    found = [f"op:{request.op}"]
    words = request.words
    if "value" in words:
        found.append(f"value:{words['value']}")
    if "type" in words:
        found.append(f"scale:{words['type']}")
    if "table" in request.tensors:
        found.append("mode:lookup")
    for name in _SCHEMES.get(request.op, ("scheme",)):
        found += _scheme_features(words[name], request) if name in words else []
    target = words.get("new_store", "")
    found += [f"store:{kind}" for kind in STORES if kind in (target, target.rpartition("_")[0])]
    rank = max((len(tensor.shape) for tensor in request.tensors.values()), default=0)
    found.append(f"rank:{rank}")
    return tuple(dict.fromkeys(found))


def _scheme_features(text: str, request: Request) -> list[str]:
    table = request.tensors.get("table")
    try:
        scheme = Scheme.parse(text, tables=[] if table is None else [table.array()])
    except QuantspecError:
        return []
    found = [f"value:{scheme.value.name}", f"store:{scheme.store.kind}"]
    found += [f"axis:{scheme.store.d}"] if scheme.store.packed else []
    found += ["mode:lookup"] if scheme.is_lookup else ["mode:symmetric"]
    levels = [] if scheme.block is None else [f"scale:{scheme.block.scale.name}"]
    levels += [] if scheme.tensor is None else [f"scale:{scheme.tensor.name}"]
    both = scheme.block is not None and scheme.tensor is not None
    return [*found, *levels, "level:both" if both else "level:block" if scheme.block is not None else "level:tensor"]


def lacking(case: Case, identity: Identity) -> str:
    """The first feature that an implementation says it lacks for a case, with its limits; "" where it has all.

    A policy is the other way round: cases under one are only for implementations that declare it.
    """
    table = {
        "op": identity.ops,
        "value": identity.values,
        "store": identity.stores,
        "scale": identity.scales,
        "mode": identity.modes,
        "level": identity.levels,
    }
    for feature in case.features:
        name, _, what = feature.partition(":")
        have = table.get(name, ())
        if have and what not in have:
            return feature
        if name == "rank" and identity.max_rank and int(what) > identity.max_rank:
            return feature
    for axis, policy in case.policies.items():
        if policy not in [name.strip() for name in identity.policies.get(axis, "").split(",")]:
            return f"policy:{axis}={policy}"
    if identity.max_elements and case.elements > identity.max_elements:
        return f"elements:{case.elements}"
    return ""
