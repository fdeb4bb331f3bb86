"""The failure block of a suite case: what was asked, what came, which bits differ, which rules fix them, how to see it again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..compare import Difference
from ..entries import width_of
from ..outside import printable
from ..patterns import hexadecimal
from ..shelltext import line_of
from ..spec import rule_line, rules
from ..steptext import wrapped
from ..suite.case import Case
from ..suite.outcome import CaseResult
from .alike import alike
from .anatomy import Anatomy
from .followed import Followed, followed

__all__ = ["Entry", "FailureBlock", "block_record", "failure_block", "failure_json", "repro_line"]

#: Of an adapter's own words, lines and characters that are shown.
MOST_LINES, MOST_WORDS = 12, 2000


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry that differs. `source` is what it was made from: label and text."""

    index: tuple[int, ...]
    flat: int
    block: tuple[int, ...] | None
    place: str
    source: tuple[tuple[str, str], ...]
    expected: str
    expected_text: str
    actual: str
    actual_text: str
    apart: str


@dataclass(frozen=True, slots=True)
class FailureBlock:
    """One case that did not come out as expected, ready to print or to store."""

    id: str
    title: str
    implementation: str
    outcome: str
    part: str
    kind: str
    reason: str
    rule: str
    rule_title: str
    count: int
    total: int
    pattern: str
    buckets: Mapping[str, int]
    entries: tuple[Entry, ...]
    rules: tuple[str, ...]
    repro: str
    minimal: str = ""
    alike: tuple[str, ...] = ()  #: other policies that give the bits that came
    followed: Followed | None = None  #: recipe, codec and container of the case, with the steps of the first entry

    def as_json(self) -> dict[str, Any]:
        """The same fields as JSON."""
        return {name: _listed(member) for name, member in asdict(self).items()}

    def text(self) -> str:
        """The block as lines."""
        rule = f"rule {rule_line(self.rule)}" if self.rule else ""
        head = "   ".join(part for part in (f"FAIL {self.id}", f"impl={self.implementation}", rule) if part)
        kind = f" ({self.kind} of {self.part})" if self.kind else ""
        lines = [head, f" {self.title}"] if self.title else [head]
        lines.append(_line("outcome", f"{self.outcome}{kind}"))
        if not self.entries:
            lines += [
                _line("reason" if number == 0 else "", line) for number, line in enumerate(self.reason.splitlines())
            ]
        for number, entry in enumerate(self.entries):
            lines += _entry_lines(entry, self.part, number == 0)
        if self.followed is not None:
            lines += self.followed.lines()
        lines += [line for text in self.alike for line in wrapped("bits of", text)]
        if self.rules:
            lines += wrapped("rules", " ".join(self.rules))
        if self.count:
            share = f"{self.count} of {self.total} entries of {self.part} differ"
            lines.append(_line("pattern", f"{share}{f'; {self.pattern}' if self.pattern else ''}"))
        if len(self.buckets) > 1:
            lines.append(_line("buckets", _counted(self.buckets)))
        lines.append(_line("repro", self.repro))
        return "\n".join([*lines, *([_line("minimal", self.minimal)] if self.minimal else [])])


def _counted(buckets: Mapping[str, int]) -> str:
    """Differing entries by the rules that tell them apart."""
    shared = set.intersection(*(set(name.split()) for name in buckets))
    rows = []
    for name, count in buckets.items():
        own = [rule for rule in name.split() if rule not in shared and rule != "-"]
        rows.append(f"{count} with {' '.join(own) if own else 'no rule of their own'}")
    return ", ".join(rows)


def _listed(member: Any) -> Any:
    if isinstance(member, tuple | list):
        return [_listed(each) for each in member]
    return {name: _listed(each) for name, each in member.items()} if isinstance(member, dict) else member


def _line(label: str, text: str) -> str:
    return f" {label:9s} {text}"


def _entry_lines(entry: Entry, part: str, full: bool) -> list[str]:
    """The lines of one entry: all of it for the first, one line for the others."""
    if not full:
        return [_line("also", f"{entry.place}: expected {entry.expected_text}; actual {entry.actual_text}")]
    apart = f"  {entry.apart}" if entry.apart else ""
    lines = [_line("where", f"{part}, {entry.place}"), *(_line(label, text) for label, text in entry.source)]
    return [*lines, _line("expected", entry.expected_text), _line("actual", f"{entry.actual_text}{apart}")]


def repro_line(verb: str, case_id: str, address: str, extra: Sequence[str] = ()) -> str:
    """The command that shows one case again."""
    return line_of(["quantspec", verb, case_id, "--impl", address, *extra])


def block_record(
    case: Case, result: CaseResult, address: str, *, first: int = 3, repro: str = "", minimal: str = ""
) -> FailureBlock:
    """The failure block of a result as a record; `repro` where another command than the usual one shows it again."""
    mismatch = result.mismatch
    differences = mismatch.first[:first] if mismatch is not None and mismatch.part in case.outputs else ()
    anatomy = Anatomy.of(case) if differences else None
    entries = [_entry(anatomy, mismatch.part, each) for each in differences] if anatomy and mismatch else []
    known = rules().get(result.rule)
    return FailureBlock(
        id=case.id,
        title=printable(case.title),
        implementation=printable(address),
        outcome=result.outcome,
        part="" if mismatch is None else printable(mismatch.part),
        kind="" if mismatch is None else mismatch.kind,
        reason=_bounded(result.reason),
        rule=printable(result.rule),
        rule_title="" if known is None else known.title,
        count=0 if mismatch is None else mismatch.count,
        total=0 if mismatch is None else mismatch.total,
        pattern="" if mismatch is None else mismatch.pattern,
        buckets={} if mismatch is None else dict(mismatch.buckets),
        entries=tuple(entries),
        rules=tuple(printable(rule) for rule in result.rules),
        repro=repro or repro_line("replay", case.id, address),
        minimal=minimal,
        alike=alike(case, result) if anatomy else (),
        followed=followed(anatomy, mismatch) if anatomy and mismatch else None,
    )


def _bounded(reason: str) -> str:
    """An adapter's words, safe to print and short."""
    lines = printable(reason[:MOST_WORDS], keep="\n").splitlines()
    cut = [] if len(lines) <= MOST_LINES and len(reason) <= MOST_WORDS else ["... (cut)"]
    return "\n".join([*lines[:MOST_LINES], *cut])


def _entry(anatomy: Anatomy, part: str, difference: Difference) -> Entry:
    width = width_of(part, anatomy.out, anatomy.case.outputs[part].dtype)
    index = difference.index
    return Entry(
        index=index,
        flat=difference.flat,
        block=anatomy.block(part, index),
        place=anatomy.place(part, index, difference.flat),
        source=tuple(anatomy.source(part, index)),
        expected=hexadecimal(difference.expected, width),
        expected_text=anatomy.shown(part, difference.expected),
        actual=hexadecimal(difference.actual, width),
        actual_text=anatomy.shown(part, difference.actual),
        apart=anatomy.apart(part, difference),
    )


def failure_block(
    case: Case, result: CaseResult, address: str, *, first: int = 3, repro: str = "", minimal: str = ""
) -> str:
    """The failure block of a result as text: `first` differing entries, all of them counted."""
    return block_record(case, result, address, first=first, repro=repro, minimal=minimal).text()


def failure_json(
    case: Case, result: CaseResult, address: str, *, first: int = 3, repro: str = "", minimal: str = ""
) -> dict[str, Any]:
    """The failure block of a result as JSON, the same fields."""
    return block_record(case, result, address, first=first, repro=repro, minimal=minimal).as_json()
