"""A run as JUnit XML, the way that most servers for continuous integration read it."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable

from ..outside import printable
from .record import CaseRecord, RunRecord

__all__ = ["junit"]

_TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def _set(element: ET.Element, name: str, text: str) -> None:
    """An attribute without a character that XML has not."""
    element.set(name, printable(text))


def _case(parent: ET.Element, record: CaseRecord, status: str) -> None:
    case = ET.SubElement(parent, "testcase", {"classname": record.id.rsplit(".", 1)[0], "name": record.id})
    _set(case, "time", f"{record.seconds:.6f}")
    if status == "passed":
        return
    found = ET.SubElement(case, _TAGS[status])
    told = f"{record.outcome}, {record.comparison}" if record.comparison else record.outcome
    first = record.reason.partition("\n")[0]
    _set(found, "message", f"{told} {record.rule}: {first}" if record.rule else f"{told}: {first}")
    if status != "skipped":
        _set(found, "type", told)
    mismatch = record.mismatch
    rows = [] if mismatch is None else [
        f"{mismatch.part} {list(row.index)} flat {row.flat}: expected 0x{row.expected:X}, actual 0x{row.actual:X}"
        for row in mismatch.first
    ]  # fmt: skip
    found.text = printable("\n".join([record.reason, *rows]), keep="\n")


def junit(run: RunRecord, status_of: Callable[[CaseRecord], str], state: str) -> str:
    """The XML. `state` says what keeps the run from being cited: a run that did not end has an error of its own."""
    header = run.header
    statuses = [status_of(record) for record in run.results]
    counts = Counter(statuses)
    broken = run.footer is None or not run.complete
    root = ET.Element("testsuites", {"name": "quantspec"})
    suite = ET.SubElement(root, "testsuite", {"tests": str(len(statuses) + broken), "timestamp": header["started"]})
    _set(suite, "name", f"quantspec {header['implementation']['name']}")
    for name, count in (
        ("failures", counts["failed"]),
        ("errors", counts["error"] + broken),
        ("skipped", counts["skipped"]),
    ):
        _set(suite, name, str(count))
    _set(suite, "time", f"{sum(record.seconds for record in run.results):.6f}")
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("run", header["run"]),
        ("suite", f"{header['suite']['version']} {header['suite']['digest']}"),
        ("spec", f"{header['spec']['version']} {header['spec']['digest']}"),
        ("implementation", f"{header['implementation']['name']} {header['implementation']['version']}"),
        ("address", header["implementation"]["address"]),
    ):
        _set(ET.SubElement(properties, "property", {"name": name}), "value", value)
    for record, status in zip(run.results, statuses, strict=True):
        _case(suite, record, status)
    if broken:
        case = ET.SubElement(suite, "testcase", {"classname": "quantspec", "name": "the-run-is-complete", "time": "0"})
        ET.SubElement(case, "error", {"message": state, "type": "incomplete"})
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"
