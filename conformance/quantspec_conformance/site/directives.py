"""The directives of the pages: {rule} renders a rule from its record, {example} a worked example from its lines,
{deviation} and {fault} what another stack gives, from their rows."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from ..citations import Citation
from ..doccases import load
from ..examples import DTYPES, Entry, Example, Tensor, parse_body
from ..records import Deviation, deviations
from ..rulebook import cases_of, decisions_of, deviations_of, source_of
from ..spec import Rule, rules
from .boxes import MEANINGS, numbers, rows
from .faults import ORACLES, faults
from .stacks import linked_source, stack_page

__all__ = ["DeviationDirective", "ExampleDirective", "FaultDirective", "RuleDirective"]

ANCHOR = "L-{}"  #: of a line on a page of source


def _link(label: str, uri: str, *classes: str) -> nodes.reference:
    return nodes.reference("", label, internal=True, refuri=uri, classes=list(classes))


class _Linking(SphinxDirective):
    """A directive that links to other pages."""

    def _uri(self, page: str, anchor: str = "") -> str:
        builder = self.env.app.builder
        return builder.get_relative_uri(self.env.docname, page) + (f"#{anchor}" if anchor else "")


class RuleDirective(_Linking):
    """A rule: title, level, text, formula, and what hangs on it. Its anchor is its id."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        """The section of the rule."""
        rule = rules().get(self.arguments[0])
        if rule is None:
            raise self.error(f"there is no rule {self.arguments[0]}")
        section = nodes.section(ids=[rule.id], names=[rule.id.lower()], classes=["qs-rule", f"qs-{rule.level.lower()}"])
        section += nodes.title("", "", nodes.inline("", rule.id, classes=["qs-id"]), nodes.Text(f" {rule.title}"))
        section += addnodes.index(entries=[("single", rule.id, rule.id, "main", None)])
        section += nodes.paragraph("", "", *self._level(rule), classes=["qs-level"])
        body = nodes.container(classes=["qs-text"])
        text = re.sub(r"(?<=\w)\*(?=\w)", r"\\*", rule.text)  # q*s is a name, not emphasis
        self.state.nested_parse(StringList(text.splitlines(), rule.id), self.content_offset, body)
        section += body
        if rule.formula:
            section += nodes.literal_block(rule.formula, rule.formula, language="text", classes=["qs-formula"])
        section += self._hanging(rule)
        return [section]

    def _level(self, rule: Rule) -> list[nodes.Node]:
        changed = f", changed in {', '.join(rule.changed)}" if rule.changed else ""
        found: list[nodes.Node] = [nodes.strong("", rule.level), nodes.Text(f" since {rule.since}{changed}")]
        if rule.axis:
            found.append(nodes.Text(f" · stacks differ here: {rule.axis}"))
        if rule.testable != "yes":
            found.append(nodes.Text(f" · not testable: {rule.testable.removeprefix('no: ')}"))
        return found

    def _hanging(self, rule: Rule) -> list[nodes.Node]:
        """Governs, source, cases, decisions, dissent: a row each, where there is something to show."""
        cases = [case for case in cases_of(rule.id) if rule.id in case["shows"]]
        links = {
            "governs": [nodes.Text(", ".join(rule.steps))],
            "reference": self._joined([self._source(row) for row in source_of(rule.id, "quantspec")]),
            "examples": self._joined([_link(case["id"], self._uri(case["page"], case["id"])) for case in cases]),
            "decided": self._joined(
                [
                    _link(title, self._uri(f"decisions/{file.removesuffix('.md')}"))
                    for file, title in decisions_of(rule.id)
                ]
            ),
        }
        listed = nodes.container(classes=["qs-facts"])
        for name, row in links.items():
            if row:
                listed += nodes.paragraph("", "", nodes.inline("", name, classes=["qs-key"]), *row)
        return [listed, *self._dissent(deviations_of(rule.id))]

    def _source(self, row: Citation) -> nodes.reference:
        page = f"source/{row.file.removesuffix('.py').replace('/', '.')}"
        return _link(f"{row.function or row.file}:{row.line}", self._uri(page, ANCHOR.format(row.line)))

    def _joined(self, links: Sequence[nodes.Node]) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for link in links:
            found += [nodes.Text(" · "), link] if found else [link]
        return found

    def _dissent(self, found: Sequence[Deviation]) -> list[nodes.Node]:
        """Other stacks that give other bits, folded."""
        if not found:
            return []
        count = f"{len(found)} stack{'s' * (len(found) > 1)} seen to give other bits"
        items = nodes.bullet_list()
        for row in found:
            version = f" {row.version}" if row.version else ""
            page = stack_page(row.stack)
            name = nodes.Text(row.stack) if page is None else _link(row.stack, self._uri(page, row.id))
            text = [nodes.strong("", "", name), nodes.Text(f"{version}: {row.what} ")]
            if row.theirs and row.example is not None:
                text.append(nodes.literal("", _question(row.example)))
                text.append(nodes.Text(" gives "))
                text.append(nodes.literal("", row.theirs))
                text.append(nodes.Text(" there. "))
            text.append(nodes.inline("", f"({row.evidence}: {row.source})", classes=["qs-evidence"]))
            items += nodes.list_item("", nodes.paragraph("", "", *text))
        opened = f'<details class="qs-dissent"><summary>{count}</summary>'
        return [nodes.raw("", opened, format="html"), items, nodes.raw("", "</details>", format="html")]


def _question(example: Example) -> str:
    """What is asked of an example, on one line."""
    return "; ".join([" ".join(example.do), *(f"{name} {entry.text}" for name, entry in example.given.items())])


class ExampleDirective(SphinxDirective):
    """A worked example: what is given, each step with its bits and its number, the result. Its anchor is its id."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"class": directives.class_option}

    def run(self) -> list[nodes.Node]:
        """The box of the example."""
        example = parse_body(self.arguments[0], list(self.content), page=self.env.docname, line=self.lineno)
        box = nodes.container(ids=[example.id], classes=["qs-example"])
        head = nodes.paragraph("", "", nodes.strong("", example.title or example.id), classes=["qs-head"])
        head += [nodes.Text(" "), _link(example.id, f"#{example.id}", "qs-caseid")]
        box += head
        for note in example.notes:
            box += nodes.paragraph("", note)
        operations = nodes.paragraph("", "", nodes.inline("", "do", classes=["qs-key"]), classes=["qs-row"])
        operations += nodes.literal("", ", then ".join(example.do))
        box += operations
        box += [_row(example, name, entry) for name, entry in example.given.items()]
        box += nodes.paragraph("", "gives", classes=["qs-gives"])
        box += [_row(example, name, entry) for name, entry in example.gives.items()]
        if example.shows:
            box += nodes.paragraph("", f"shows {', '.join(example.shows)}", classes=["qs-shows"])
        return [box]


def _row(example: Example, name: str, entry: Entry, *, against: Mapping[str, Entry] | None = None) -> nodes.Node:
    """One entry: its name and what it means, its bits; those that differ from another answer are marked."""
    row = nodes.container(classes=["qs-row"])
    meaning = MEANINGS.get(name, "")
    head = nodes.paragraph("", "", nodes.literal("", name), classes=["qs-key"])
    said = [meaning] if meaning and meaning != name else []
    if isinstance(entry.content, Tensor):
        shape = entry.content.shape
        said.append(entry.content.dtype + ("" if len(shape) == 1 else f" {'x'.join(map(str, shape)) or 'scalar'}"))
    if said:
        head += nodes.inline("", f" {', '.join(said)}", classes=["qs-meaning"])
    row += head
    if isinstance(entry.content, Tensor):
        other = (against or {}).get(name)
        row += nodes.raw("", _boxes(example, name, entry, other), format="html")
    elif name == "refused":
        rule_id, _, kind = entry.content.partition(" ")
        row += nodes.paragraph("", f"by {rule_id} ({kind})", classes=["qs-words"])
    else:
        row += nodes.paragraph("", "", nodes.literal("", entry.content), classes=["qs-words"])
    if entry.remark:
        row += nodes.paragraph("", entry.remark, classes=["qs-remark"])
    return row


def _boxes(example: Example, name: str, entry: Entry, other: Entry | None = None) -> str:
    """Each pattern over its number, a line for each run along the last axis; patterns that `other` has not are marked."""
    tensor = entry.content
    if isinstance(tensor, str):
        return ""
    digits, _ = DTYPES[tensor.dtype]
    said = numbers(example, name, entry)
    expected = other.content if other is not None and isinstance(other.content, Tensor) else None
    same = tensor.patterns if expected is None or expected.shape != tensor.shape else expected.patterns
    lines = []
    for row in rows(tensor):
        boxes = []
        for i in row:
            number = f"<i>{html.escape(said[i])}</i>" if said else ""
            mark = "" if tensor.patterns[i] == same[i] else ' class="qs-other" title="other bits"'
            boxes.append(f"<span{mark}><b>{tensor.patterns[i]:0{digits}X}</b>{number}</span>")
        lines.append(f'<div class="qs-line">{"".join(boxes)}</div>')
    empty = "" if lines else '<div class="qs-line"><span><i>nothing</i></span></div>'
    return f'<div class="qs-bits">{"".join(lines)}{empty}</div>'


def _asked(example: Example) -> list[nodes.Node]:
    """The rows of what is asked."""
    operations = nodes.paragraph("", "", nodes.inline("", "do", classes=["qs-key"]), classes=["qs-row"])
    operations += nodes.literal("", ", then ".join(example.do))
    return [operations, *(_row(example, name, entry) for name, entry in example.given.items())]


def _head(text: str, anchor: str) -> nodes.paragraph:
    head = nodes.paragraph("", "", nodes.strong("", text), classes=["qs-head"])
    head += [nodes.Text(" "), _link(anchor, f"#{anchor}", "qs-caseid")]
    return head


def _where(evidence: str, source: str) -> nodes.paragraph:
    """The last line of a box: how it is known, and where anybody can look."""
    address = linked_source(source)
    name = nodes.reference("", source, refuri=address) if address else nodes.Text(source)
    return nodes.paragraph("", "", nodes.Text(f"{evidence}: "), name, classes=["qs-shows"])


class DeviationDirective(SphinxDirective):
    """What a stack gives in other bits than canonical: a row of deviations.toml. Its anchor is its id."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The box of the row."""
        found = next((row for row in deviations() if row.id == self.arguments[0]), None)
        if found is None:
            raise self.error(f"there is no deviation {self.arguments[0]}")
        box = nodes.container(ids=[found.id], classes=["qs-example", "qs-deviation"])
        box += _head(found.what, found.id)
        box += nodes.paragraph("", f"by {', '.join(found.rules)}", classes=["qs-by"])
        if found.example is not None:
            example = found.example
            box += _asked(example)
            box += nodes.paragraph("", "canonical gives", classes=["qs-gives"])
            box += [_row(example, name, entry) for name, entry in example.gives.items()]
            if found.theirs:
                theirs = parse_body(found.id, ["do nothing", "gives", found.theirs], page="deviations.toml").gives
                box += nodes.paragraph("", f"{found.stack} gives", classes=["qs-gives"])
                box += [_row(example, name, entry, against=example.gives) for name, entry in theirs.items()]
        version = f" of {found.version}" if found.version and found.version not in found.source else ""
        box += _where(found.evidence + version, found.source)
        return [box]


class FaultDirective(_Linking):
    """What a peer gets wrong by its own rules: a row of faults.toml. The content goes below the box's rows."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The box of the row."""
        fault = faults().get(self.arguments[0])
        if fault is None:
            raise self.error(f"there is no fault {self.arguments[0]}")
        box = nodes.container(ids=[fault.id], classes=["qs-example", "qs-fault"])
        box += _head(fault.what, fault.id)
        box += _asked(fault.example)
        box += nodes.paragraph("", f"right, by {ORACLES[fault.oracle]}", classes=["qs-gives"])
        box += [_row(fault.example, name, entry) for name, entry in fault.example.gives.items()]
        box += nodes.paragraph("", f"{fault.peer} {fault.version} gives", classes=["qs-gives"])
        if not fault.got:
            box += nodes.paragraph("", "no answer: it fails", classes=["qs-words"])
        box += [_row(fault.example, name, entry, against=fault.example.gives) for name, entry in fault.got.items()]
        if fault.case:
            page = next((case["page"] for case in load()["cases"] if case["id"] == fault.case), None)
            shown = nodes.literal("", fault.case)
            if page is not None:
                shown = nodes.reference("", fault.case, internal=True, refuri=self._uri(page, fault.case))
            box += nodes.paragraph("", "", nodes.Text("Case of the suite: "), shown, classes=["qs-shows"])
        below = nodes.container(classes=["qs-shows"])
        self.state.nested_parse(self.content, self.content_offset, below)
        box += below
        return [box]
