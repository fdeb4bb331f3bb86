"""The worked examples of the spec as cases: those of one operation that an implementation can be asked for."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import DamagedError
from ..examples import Tensor, names_canonical
from ..implementations.law import OUTPUTS, tell
from ..protocol.messages import Ok, Rejected, Request
from ..steps import STEPS
from .case import Case, Refusal, features_of

__all__ = ["doc_cases"]

#: Operation -> entries that only the harness's own examples of it know.
_OURS: dict[str, tuple[str, ...]] = {"scheme": ("scheme_2",)}


def doc_cases(content: Mapping[str, Any]) -> Iterator[Case]:
    """The cases of vectors/doc.json of one operation, as suite `doc`, level 0. What the file holds is expected; the law fills in
    what an example leaves out (scale codes beside codes) and names the argument of a refusal. DamagedError."""
    for row in content["cases"]:
        op = row["do"][0]
        ours = any(name in row["given"] for name in _OURS.get(op, ())) or not names_canonical(
            row["given"], str(row["gives"].get("refused", ""))
        )
        if len(row["do"]) == 1 and op in OUTPUTS and not ours:
            try:
                yield _case(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DamagedError(f"doc.json: {str(row.get('id'))[:80]}: {type(error).__name__}: {error}") from None


def _tensor(row: Mapping[str, Any]) -> Tensor:
    return Tensor(row["dtype"], tuple(row["shape"]), tuple(int(pattern, 16) for pattern in row["bits"].split()))


def _case(row: Mapping[str, Any]) -> Case:
    given, gives, op = row["given"], row["gives"], row["do"][0]
    words = {name: entry for name, entry in given.items() if isinstance(entry, str)}
    request = Request(op, words, {name: _tensor(entry) for name, entry in given.items() if name not in words})
    answer = tell(request).answer
    outputs: dict[str, Tensor] = {}
    told: dict[str, str] = {}
    refusal = None
    if "refused" in gives:
        rule, _, kind = gives["refused"].partition(" ")
        named = answer.argument if isinstance(answer, Rejected) else ""
        refusal = Refusal(kind, rule, named if named in given else "")
    elif isinstance(answer, Ok):
        tensors, texts = OUTPUTS[op]
        outputs = {**answer.tensors, **{name: _tensor(gives[name]) for name in tensors if name in gives}}
        told = {**answer.words, **{name: gives[name] for name in texts if name in gives}}
    return Case(
        id=row["id"],
        title=row["title"],
        op=op,
        level=0,
        kind="positive" if refusal is None else "negative",
        words=words,
        inputs=request.tensors,
        outputs=outputs,
        told=told,
        equal=dict.fromkeys(outputs, "bits"),
        intermediates={
            name: _tensor(entry) for name, entry in gives.items() if name in STEPS and isinstance(entry, dict)
        },
        refusal=refusal,
        rules=tuple(row["rules"]),
        features=features_of(request),
        provenance=f"spec/{row['page']}.md",
        suite="doc",
    )
