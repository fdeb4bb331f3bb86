"""The commands about the suite: list, show, replay, shrink, diff, verify, expect, adapter, report."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from .errors import UsageError
from .guard import guarded
from .options import FILE
from .outside import printable, reason_of

__all__ = ["register"]

LEVEL = click.IntRange(0, 2)
IMPL = click.option(
    "--impl", "address", required=True, metavar="ADDRESS", help="Who answers: exec:CMD, py:FILE.py:CLASS, ..."
)
TIMEOUT = click.option(
    "--timeout", type=click.FloatRange(0.01), default=10.0, show_default=True, help="Seconds a request."
)


def _print(lines: Any) -> None:
    from .report import console

    out = console()
    for line in lines:
        out.print(Text(line), soft_wrap=True)


def _read(path: Path) -> Any:
    """A result file; one that did not reach its end says so on stderr."""
    from .resultset.reader import read_run

    run = read_run(path)
    if not run.complete:
        why = "has no end: it was killed, or is still being written" if run.footer is None else "did not reach its end"
        click.echo(f"quantspec: warning: {printable(str(path))} {why}; {_not_run(run)}", err=True)
    return run


def _not_run(run: Any) -> str:
    count = run.totals.get("notrun", 0)
    return f"{count} of {len(run.results)} cases were not run" if count else f"it has {len(run.results)} cases"


def _cases(level: int = 2) -> Any:
    from .suitecommand import shipped

    return [case for case in shipped() if case.level <= level]


def _worked(case_id: str) -> list[str]:
    """A worked example of several operations, which is no case of the suite, as its page has it; [] for any other id."""
    from .examples import examples

    example = examples().get(case_id)
    if example is None or len(example.do) == 1:
        return []
    rows = [("do", " ".join(example.do)), ("shows", " ".join(example.shows))]
    rows += [(name, entry.text) for name, entry in example.given.items()]
    rows += [("gives", ""), *((name, entry.text) for name, entry in example.gives.items())]
    head = (
        f"{case_id}  {example.title}",
        f"a worked example of several operations, spec/{example.page}:{example.line}",
        "",
    )
    return [*head, *(f"  {name:<18} {text}".rstrip() for name, text in rows)]


def _expression(terms: tuple[str, ...]) -> str:
    """Terms as one expression. UsageError for an empty one: it would select every case."""
    if not all(term.strip() for term in terms):
        raise UsageError("a term is empty; leave it out for every case, or write one such as op:encode")
    return " ".join(terms)


def _suite_ids() -> list[str]:
    return [case.id for case in _cases()]


@click.command("list", context_settings={"ignore_unknown_options": True})
@click.argument("terms", nargs=-1)
@click.option("--level", type=LEVEL, default=0, show_default=True, help="Up to this level, as for run.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line.")
@guarded
def list_(terms: tuple[str, ...], level: int, as_json: bool) -> None:
    """List cases: op:encode value:e2m1,e4m3 rule:VAL-7 bug:tie -kind:negative, or words; all terms must hold."""
    from .suitecommand import chosen_cases
    from .triage.list import list_lines

    lines = list_lines(chosen_cases(_expression(terms), level=level), as_json)
    for line in lines:
        click.echo(line)


@click.command()
@click.argument("case_id", metavar="ID")
@click.option("--index", metavar="I,J", help="Explain one element, step by step.")
@guarded
def show(case_id: str, index: str | None) -> None:
    """Show one case: what is asked, what the law answers, its rules; or one of its elements step by step."""
    from .triage.element import explain_case
    from .triage.find import find_case
    from .triage.replay import index_of
    from .triage.show import show_lines

    if index is None and (worked := _worked(case_id)):
        _print(worked)
        return
    case = find_case(_cases(), case_id)
    _print(show_lines(case) if index is None else explain_case(case, index_of(index, "--index")))


@click.command()
@click.argument("case_id", metavar="ID")
@IMPL
@TIMEOUT
@click.option("--block", metavar="I,J", help="Only this block.")
@click.option("--element", metavar="I,J", help="Only this element.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guarded
def replay(case_id: str, address: str, timeout: float, block: str | None, element: str | None, as_json: bool) -> None:
    """Run one case again and show how it fails."""
    from .implementations.address import open_implementation
    from .triage.find import find_case
    from .triage.replay import index_of
    from .triage.replay import replay as again

    case = find_case(_cases(), case_id)
    implementation = open_implementation(address, timeout=timeout)
    try:
        lines, code = again(
            case,
            implementation,
            address=address,
            block=None if block is None else index_of(block, "--block"),
            element=None if element is None else index_of(element, "--element"),
            as_json=as_json,
        )
    finally:
        implementation.close()
    _print(lines)
    sys.exit(code)


@click.command()
@click.argument("case_id", metavar="ID")
@IMPL
@TIMEOUT
@click.option("--budget", type=click.IntRange(1), default=80, show_default=True, help="Round trips at most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guarded
def shrink(case_id: str, address: str, timeout: float, budget: int, as_json: bool) -> None:
    """Find the smallest input that still fails as a case does: one block, few elements, simple numbers."""
    from .implementations.address import open_implementation
    from .triage.find import find_case
    from .triage.show import show_lines
    from .triage.shrink import shrink as smaller

    case = find_case(_cases(), case_id)
    implementation = open_implementation(address, timeout=timeout)
    try:
        found = smaller(case, implementation, address=address, budget=budget)
    finally:
        implementation.close()
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=1))
    else:
        _print([*found.text().splitlines(), "", *show_lines(found.case)])
    sys.exit(1)


@click.command()
@click.argument("before", type=FILE)
@click.argument("after", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guarded
def diff(before: Path, after: Path, as_json: bool) -> None:
    """Compare two result files: fixed, broken, other wrong bits, no longer supported."""
    from .triage.diff import diff_runs

    lines, code = diff_runs(_read(before), _read(after), as_json=as_json)
    _print(lines)
    sys.exit(code)


@click.command()
@click.argument("result", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guarded
def verify(result: Path, as_json: bool) -> None:
    """Check a result file: schema, digests, totals, and everything that the suite can tell of it."""
    from .resultset.verify import verify as faults

    found = faults(result)
    if as_json:
        click.echo(json.dumps({"file": str(result), "faults": found}, indent=1))
    else:
        said = f"{len(found)} fault{'s' * (len(found) > 1)}"
        if not found:
            run = _read(result)
            said = "verified" if run.complete else f"verified as far as it goes; {_not_run(run)}"
        _print([*found, f"{result}: {said}"])
    sys.exit(1 if found else 0)


@click.group()
def expect() -> None:
    """Expectations of an implementation: what it is known to get wrong, strict both ways."""


@expect.command("check")
@click.argument("file", type=FILE)
@click.argument("result", type=FILE, required=False)
@guarded
def expect_check(file: Path, result: Path | None) -> None:
    """What is wrong with FILE, by itself or against a result file."""
    from .expect import check_command

    run = None if result is None else _read(result)
    lines, code = check_command(file, run, today=datetime.now(UTC).date(), suite_ids=_suite_ids())
    _print(lines)
    sys.exit(code)


@expect.command("update")
@click.argument("file", type=FILE)
@click.argument("result", type=FILE)
@click.option("--write", is_flag=True, help="Change the file; without it the new text is printed.")
@guarded
def expect_update(file: Path, result: Path, write: bool) -> None:
    """Propose the smallest edits that make FILE agree with a result file."""
    from .expect import update_command

    text, code = update_command(file, _read(result), today=datetime.now(UTC).date(), suite_ids=_suite_ids())
    if not write:
        click.echo(text, nl=False)
        sys.exit(code)
    try:
        file.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be written: {reason_of(error)}") from None
    _print([f"{file}: {'changed' if code else 'nothing to change'}"])


@expect.command("script")
@click.argument("result", type=FILE)
@guarded
def expect_script(result: Path) -> None:
    """Print a starter file with the failures of a result file."""
    from .expect import script_command

    text, code = script_command(_read(result))
    click.echo(text, nl=False)
    sys.exit(code)


@click.group()
def adapter() -> None:
    """Adapters: a template to begin with, and a check before the first run."""


@adapter.command("new")
@click.argument("folder", type=FILE)
@click.option("--lang", "language", required=True, metavar="LANG", help="python, c, rust or js.")
@guarded
def adapter_new(folder: Path, language: str) -> None:
    """Copy the template of a language into FOLDER."""
    from .adapter_new import new_adapter, next_steps

    written = new_adapter(language, folder)
    _print(
        [*(f"wrote {path}" for path in written), "", "next:", *(f"  {line}" for line in next_steps(language, folder))]
    )


@adapter.command("check")
@click.argument("address")
@TIMEOUT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guarded
def adapter_check(address: str, timeout: float, as_json: bool) -> None:
    """Look at an adapter before any run: framing, stdout, NaNs, determinism, restart, level 0 of what it claims."""
    from .adapter_check import check_adapter, count_line, exit_code, row_lines

    show = None if as_json else lambda finding: _print(row_lines(finding))
    findings = check_adapter(address, _cases(0), timeout=timeout, on_finding=show)
    if as_json:
        rows = [{"check": f.check, "verdict": f.verdict, "text": f.text, "hint": f.hint} for f in findings]
        click.echo(json.dumps({"findings": rows}, indent=1))
    else:
        _print([count_line(findings)])
    sys.exit(exit_code(findings))


@click.command()
@click.argument("results", type=FILE, nargs=-1, required=True)
@click.option("--html", "folder", type=FILE, help="Write a static report into this folder.")
@click.option(
    "--export", "form", type=click.Choice(["junit", "markdown", "csv", "badge", "ctrf"]), help="Print in this form."
)
@click.option(
    "--tests",
    "tests",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="With --html: tests by rule, written by pytest --qs-rules; repeatable.",
)
@guarded
def report(results: tuple[Path, ...], folder: Path | None, form: str | None, tests: tuple[Path, ...]) -> None:
    """Result files as pages that open from disk (--html), or in another form (--export).

    Several files of one implementation make a trend, those of one implementation under several policies columns of their own.
    """
    from .testsfile import read_tests

    if tests and folder is None:
        raise UsageError("report: --tests goes with --html")
    marked = [read_tests(path) for path in tests]
    if (folder is None) == (form is None):
        raise UsageError("report: one of --html FOLDER and --export FORM")
    runs = [_read(path) for path in results]
    if form is not None:
        from .resultset.exports import export

        if len(runs) != 1:
            raise UsageError(f"report --export {form}: one result file, {len(runs)} are given")
        click.echo(export(runs[0], form), nl=False)
        return
    from .webreport import write_report

    if folder is not None:
        pages = write_report(runs, {case.id: case for case in _cases()}, folder, tests=marked)
        _print([f"{len(pages)} files; open {pages[0]}"])


@adapter.command("export")
@click.argument("folder", type=FILE)
@click.argument("terms", nargs=-1)
@click.option("--level", type=LEVEL, default=0, show_default=True, help="Up to this level.")
@guarded
def adapter_export(folder: Path, terms: tuple[str, ...], level: int) -> None:
    """Write the requests of cases as files, for a machine without a pipe; run them later with --impl files:FOLDER."""
    from .implementations.files import export_requests
    from .suitecommand import chosen_cases

    count = export_requests(chosen_cases(_expression(terms), level=level), folder)
    _print(
        [
            f"{count} requests in {folder}; put the answers into {folder / 'answers'}, then: quantspec run --impl files:{folder}"
        ]
    )


def register(main: click.Group) -> None:
    """Add the commands to the group."""
    for command in (list_, show, replay, shrink, diff, verify, expect, adapter, report):
        main.add_command(command)
