"""The part of `adapter check` about answers: identity, echo, repetition, batches, sizes, the first cases. Rules CNF-1, CNF-5."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from quantspec.values import VALUES

from .adapter_talk import hint_of_bytes
from .capabilities import strange_names
from .examples import Tensor
from .findings import Finding
from .implementations.errors import ImplementationError
from .implementations.gate import echo_gate
from .implementations.law import tell
from .protocol.messages import Answer, Failed, Hello, Identity, Implementation, Ok, Request, Unsupported
from .shelltext import line_of
from .suite.case import Case, features_of, lacking
from .suite.outcome import CaseResult, answer_digest
from .suite.run import RunOptions, run_suite

__all__ = ["CHECKS", "check_answers"]

#: What encode is asked: zeros, ties and numbers beside them, ends of ranges, subnormals, infinities, NaNs; of both signs.
_MAGNITUDES = (
    0x00000000, 0x00000001, 0x007FFFFF, 0x33800000, 0x3A800000, 0x3A800001, 0x3B400000, 0x3E800000, 0x3E800001, 0x3F000000,
    0x3F400000, 0x3F7FFFFF, 0x3F800000, 0x3F880000, 0x3FA00000, 0x3FC00000, 0x3FE00000, 0x40200000, 0x40490FDB, 0x40600000,
    0x40A00000, 0x40C00000, 0x40E00000, 0x42FE0000, 0x43E00000, 0x43E80000, 0x47600000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000,
)  # fmt: skip
PROBES = tuple(sign | magnitude for magnitude in _MAGNITUDES for sign in (0, 0x80000000))
_BATCH = 1021  #: elements: no multiple of a vector width
_BIG = 2**18  #: elements: 1 MiB as f32
_STDERR = 8  #: last lines of it that are shown
_TWICE = 24  #: cases asked twice
_ECHO = Request("echo", {}, {"x": Tensor("f32", (6,), PROBES[:6])})
_WANTED = ("version", "language", "ops")


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is checked, what it says of itself, and the cases."""

    implementation: Implementation
    identity: Identity
    cases: tuple[Case, ...]
    address: str

    def does(self, request: Request) -> bool:
        """True where the identity lists all that a request needs."""
        case = Case(id="x.x.x", title="", op=request.op, level=0, inputs=request.tensors, features=features_of(request))
        return not lacking(case, self.identity)

    def conversions(self) -> Iterator[tuple[Request, str]]:
        """A request of PROBES for each encode and decode that is claimed, and the name of its tensor."""
        for value in VALUES:
            request = Request("encode", {"value": value}, {"x": Tensor("f32", (len(PROBES),), PROBES)})
            if self.does(request):
                yield request, "x"
            told = tell(request).answer
            if isinstance(told, Ok):
                request = Request("decode", {"value": value}, {"codes": told.tensors["codes"]})
                if self.does(request):
                    yield request, "codes"


class _Watched:
    """An implementation, and the request that it was last asked: the one that it broke on."""

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        self.last: Request | None = None

    def hello(self, hello: Hello) -> Identity:
        """Handed on."""
        return self._implementation.hello(hello)

    def handle(self, request: Request) -> Answer:
        """Handed on, and kept."""
        self.last = request
        return self._implementation.handle(request)

    def close(self) -> None:
        """Nothing: whoever opened it closes it."""


def check_answers(implementation: Implementation, cases: Sequence[Case], address: str) -> Iterator[Finding]:
    """Every check of answers. ImplementationError where it does not say who it is."""
    identity = implementation.hello(Hello())
    claimed = tuple(case for case in cases if case.level == 0 and not lacking(case, identity))
    watched = _Watched(implementation)
    subject = _Subject(watched, identity, claimed, address)
    for name, check in CHECKS.items():
        try:
            found = check(name, subject)
        except ImplementationError as error:
            found = [_broken(name, error, watched.last, subject)]
        yield from found


def _broken(name: str, error: ImplementationError, request: Request | None, subject: _Subject) -> Finding:
    """No answer came: on which request, what was said on stderr, and how to have that again."""
    case = next((case for case in subject.cases if request is not None and _alike(case.request, request)), None)
    asked = f" on {_shown(request)}" if request is not None else ""
    hint = _hint_of_break(error.status, str(error), case.id if case is not None else "", subject.address)
    return Finding(name, "bad", _tail(f"{error.status}{asked}: {error}"), hint)


def _alike(one: Request, other: Request) -> bool:
    return one.op == other.op and one.words.get("value") == other.words.get("value")


def _tail(text: str) -> str:
    """The first line and the last of the others, which are those of stderr."""
    first, *more = text.splitlines() or [""]
    return "\n".join([first, *more[-_STDERR:]])


def _hint_of_break(status: str, text: str, case_id: str, address: str) -> str:
    """What to do about a crash, a time-out or bytes that are no answer."""
    of_bytes = hint_of_bytes(text)
    if of_bytes or not case_id:
        return of_bytes or _BROKE
    again = line_of(["quantspec", "replay", case_id, "--impl", address])
    if status == "timeout":
        return f"flush after each answer, read whole lines; if it is slow: --timeout. To have it again: {again}"
    return f"its last words are on stderr; to have it again: {again}"


def _identity(name: str, subject: _Subject) -> list[Finding]:
    identity = subject.identity
    hint = "a name that is none is never asked for"
    found = [Finding(name, "bad", text, hint) for text in strange_names(identity)]
    missing = [attribute for attribute in _WANTED if not getattr(identity, attribute)]
    if missing:
        hint = (
            "without ops, values and the rest, everything is claimed; without a version, results cannot be told apart"
        )
        found.append(Finding(name, "warn", f"it says nothing about {', '.join(missing)}", hint))
    return found or [Finding(name, "ok", f"{identity.name} {identity.version}: {', '.join(identity.ops)}")]


def _echo(name: str, subject: _Subject) -> list[Finding]:
    if subject.identity.ops and "echo" not in subject.identity.ops:
        text = "no echo: whether patterns pass through unchanged is not known"
        return [Finding(name, "warn", text, "give the tensors of op=echo back; list echo among ops")]
    changed = echo_gate(subject.implementation)
    if not changed:
        return [Finding(name, "ok", "every pattern comes back: NaNs, -0, subnormals, all of f16 and bf16")]
    return [Finding(name, "bad", text, _HINTS[name]) for text in changed]


def _repeated(name: str, subject: _Subject) -> list[Finding]:
    if not subject.identity.deterministic:
        return [Finding(name, "warn", "it says deterministic=no; nothing was asked twice", _HINTS[name])]
    requests = [request for request, _ in subject.conversions()]
    requests += [case.request for case in subject.cases[:: max(1, len(subject.cases) // _TWICE)]]
    first = [answer_digest(subject.implementation.handle(request)) for request in requests]
    second = [answer_digest(subject.implementation.handle(request)) for request in requests]
    changed = [request for request, *two in zip(requests, first, second, strict=True) if two[0] != two[1]]
    if changed:
        text = f"{len(changed)} of {len(requests)} requests gave other bits the second time: {_shown(changed[0])}"
        return [Finding(name, "bad", text, _HINTS[name])]
    return [Finding(name, "ok", f"{len(requests)} requests gave the same bits twice")]


def _batches(name: str, subject: _Subject) -> list[Finding]:
    """Each pattern alone, then all of them in one tensor at several places."""
    checked = 0
    refused: list[Finding] = []
    for request, source in subject.conversions():
        tensor = request.tensors[source]
        alone: dict[int, int | None] = {}
        for pattern in dict.fromkeys(tensor.patterns):
            made = _made(subject, request, source, Tensor(tensor.dtype, (1,), (pattern,)))
            alone[pattern] = made[0] if made is not None and len(made) == 1 else None
        patterns = tuple(tensor.patterns[i % len(tensor.patterns)] for i in range(_BATCH))
        whole = Request(request.op, request.words, {source: Tensor(tensor.dtype, (_BATCH,), patterns)})
        answer = subject.implementation.handle(whole)
        if not isinstance(answer, Ok):
            refused.append(_not_done(name, request, answer))
            continue
        together = _patterns(answer)
        if together is None or len(together) != _BATCH:
            count = "more than one tensor" if together is None else f"{len(together)} elements"
            return [*refused, Finding(name, "bad", f"{_shown(request)}: {_BATCH} elements give {count}", _HINTS[name])]
        wrong = [i for i, pattern in enumerate(patterns) if alone[pattern] != together[i]]
        if wrong:
            pattern = patterns[wrong[0]]
            text = (
                f"{_shown(request)}: {pattern:X} alone gives {_hex(alone[pattern])}, as element {wrong[0]} of {_BATCH} "
                f"{_hex(together[wrong[0]])}; {len(wrong)} elements differ"
            )
            return [*refused, Finding(name, "bad", text, _HINTS[name])]
        checked += 1
    if refused:
        return refused
    if not checked:
        return [Finding(name, "warn", "not checked: it claims neither encode nor decode")]
    return [Finding(name, "ok", f"one tensor of {_BATCH} gives the bits of {_BATCH} of one, in {checked} conversions")]


def _sizes(name: str, subject: _Subject) -> list[Finding]:
    """No element, no axis, an axis of 0, and 1 MiB: each element as in a tensor of ordinary size, right or wrong."""
    requests = [request for request, _ in subject.conversions()]
    requests = [request for request in requests if isinstance(subject.implementation.handle(request), Ok)][:2] or [
        _ECHO
    ][: subject.does(_ECHO)]
    if not requests:
        return [Finding(name, "warn", "not checked: it claims none of encode, decode and echo")]
    asked = 0
    for request in requests:
        ((source, tensor),) = request.tensors.items()
        own, law = _made(subject, request, source, tensor), tell(request).answer
        if own is None or len(own) != len(tensor.patterns) or not isinstance(law, Ok):
            given_back = "something else" if own is None else f"{len(own)} elements"
            text = f"{_shown(request)}: {len(tensor.patterns)} elements give {given_back}"
            return [Finding(name, "bad", text, _HINTS[name])]
        ((result, right),) = law.tensors.items()
        times = _BIG // len(own) + 1
        given, due = tuple(tensor.patterns) * times, own * times
        for shape in ((0,), (), (2, 0, 3), (3, 2), (_BIG,)):
            count = math.prod(shape)
            sized = Request(request.op, request.words, {source: Tensor(tensor.dtype, shape, given[:count])})
            if not _fits(sized, subject.identity):
                continue
            asked += 1
            expected = Ok({result: Tensor(right.dtype, shape, due[:count])})
            wrong = _difference(subject.implementation.handle(sized), expected)
            if wrong:
                return [Finding(name, "bad", f"{_shown(sized)} of shape {shape}: {wrong}", _HINTS[name])]
    return [Finding(name, "ok", f"empty, scalar, of rank 2 and 3 and of 1 MiB: {asked} tensors")]


def _cases(name: str, subject: _Subject) -> list[Finding]:
    if not subject.cases:
        return [Finding(name, "warn", "no case of level 0 is claimed", "list the operations and formats that it does")]
    results = list(run_suite(subject.cases, subject.implementation, RunOptions(repeat=0)))
    bad = [result for result in results if result.bad]
    found: list[Finding] = []
    if bad:
        first = bad[0]
        text = f"{len(bad)} of {len(results)} cases of level 0 are wrong; {first.id}: {_became(first)}"
        found.append(Finding(name, "bad", _tail(text), _hint_of_case(first, subject.address)))
    for outcome in ("unsupported", "known"):
        some = [result for result in results if result.outcome == outcome]
        if some:
            text = f"{len(some)} of {len(results)} claimed cases were answered {outcome}, as {some[0].id}: {some[0].reason}"
            found.append(Finding(name, "warn", _tail(text), _LACKS if outcome == "unsupported" else _KNOWN))
    return found or [Finding(name, "ok", f"{len(results)} cases of level 0 pass")]


def _became(result: CaseResult) -> str:
    return f"answered failed: {result.reason}" if result.outcome == "error" else f"{result.outcome}: {result.reason}"


def _hint_of_case(result: CaseResult, address: str) -> str:
    if result.outcome in ("crash", "timeout"):
        return _hint_of_break(result.outcome, result.reason, result.id, address)
    if result.outcome == "error":
        return f"{_FAILED}; to have it again: {line_of(['quantspec', 'replay', result.id, '--impl', address])}"
    rule = f", quantspec rules {result.rule} the rule" if result.rule else ""
    return f"quantspec show {result.id} shows the case{rule}"


def _not_done(name: str, request: Request, answer: Answer) -> Finding:
    """A conversion that is claimed and was not done. Unsupported is allowed: support may be no product of lists."""
    said = type(answer).__name__.lower()
    why = ": ".join(filter(None, (getattr(answer, part, "") for part in ("feature", "kind", "url", "message"))))
    text = f"{_shown(request)}: claimed in the identity, answered {said} ({why})"
    if isinstance(answer, Unsupported):
        return Finding(name, "warn", text, _LACKS)
    return Finding(
        name, "bad", text, _FAILED if isinstance(answer, Failed) else "the law refuses none of these patterns"
    )


def _made(subject: _Subject, request: Request, source: str, tensor: Tensor) -> tuple[int, ...] | None:
    """The patterns of the one tensor of an answer."""
    return _patterns(subject.implementation.handle(Request(request.op, request.words, {source: tensor})))


def _patterns(answer: Answer) -> tuple[int, ...] | None:
    if not isinstance(answer, Ok) or len(answer.tensors) != 1:
        return None
    return next(iter(answer.tensors.values())).patterns


def _fits(request: Request, identity: Identity) -> bool:
    (tensor,) = request.tensors.values()
    rank, count = len(tensor.shape), len(tensor.patterns)
    too_deep = 0 < identity.max_rank < rank
    return not too_deep and not 0 < identity.max_elements < count


def _difference(answer: Answer, expected: Ok) -> str:
    """The first difference, in words; "" where there is none."""
    if not isinstance(answer, Ok):
        return f"answered {type(answer).__name__.lower()}: {getattr(answer, 'message', '')[:200]}".rstrip(": ")
    for name, tensor in expected.tensors.items():
        got = answer.tensors.get(name)
        if got is None:
            return f"{name} is missing"
        if (got.dtype, got.shape) != (tensor.dtype, tensor.shape):
            return f"{name} is {got.dtype} of shape {got.shape}; expected {tensor.dtype} of shape {tensor.shape}"
        for i, (due, actual) in enumerate(zip(tensor.patterns, got.patterns, strict=True)):
            if due != actual:
                return f"{name} has {actual:X} as element {i}; alone or among few it has {due:X}"
    return ""


def _shown(request: Request) -> str:
    return " ".join([request.op, *request.words.values()])


def _hex(pattern: int | None) -> str:
    return "no element" if pattern is None else f"{pattern:X}"


_LACKS = (
    "leave out of the identity what it never does; where ops and formats do not all combine, unsupported case by case is right "
    "and this is no fault"
)
_KNOWN = "as expected only where an expectation names the case: quantspec expect"
_FAILED = "the message is its own: an exception, or a request that it could not read"
_BROKE = "answer failed where your code throws; whatever happens, every request has one answer, and stdout holds nothing else"
_HINTS = {
    "identity": "answer hello with ok protocol=1.0 name=... and what you do",
    "echo": "keep patterns as integers: a host float quiets NaNs, JavaScript and R hold no f32 or u32 exactly",
    "same twice": "no state between requests, no uninitialised memory, no atomics; else say deterministic=no",
    "batches": "an element's bits may not depend on its neighbours, its place or the launch size: look at tails and vector paths",
    "sizes": "no element gives no element, a scalar has the empty shape; read whole messages, whatever their size",
}
CHECKS: dict[str, Callable[[str, _Subject], list[Finding]]] = {
    "identity": _identity,
    "echo": _echo,
    "same twice": _repeated,
    "batches": _batches,
    "sizes": _sizes,
    "cases": _cases,
}
