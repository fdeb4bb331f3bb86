"""The site is put together here: the pages of spec/ beside those generated from tables and rules, then built by Sphinx."""

import shutil
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from ..errors import DamagedError, UsageError
from ..records import decisions
from ..spec import spec_root

__all__ = ["assemble", "build", "generated"]


def generated() -> dict[str, str]:
    """Every generated page by name."""
    from . import combination_pages, differences, input_page, matrix_page, pages, rule_index, sources, stack_pages

    found = {"decisions/index": decision_index()}
    for more in (
        pages.pages(), combination_pages.pages(), differences.pages(), rule_index.pages(), sources.pages(),
        stack_pages.pages(), matrix_page.pages(), input_page.pages(),
    ):  # fmt: skip
        twice = sorted(found.keys() & more.keys())
        if twice:
            raise DamagedError(f"two generators make the page {twice[0]}")
        found |= more
    return found


def decision_index() -> str:
    """The page that lists the decisions."""
    rows = [f"| [{row.number}]({row.file}) | {row.title} | {', '.join(row.rules)} |" for row in decisions()]
    listed = [row.file.removesuffix(".md") for row in decisions()]
    return "\n".join(
        [
            "# Decisions",
            "",
            "A page for each choice on which real stacks differ: the question, what each stack does with a number that shows",
            "it, the decision, and its cost.",
            "",
            "| | decision | rules |",
            "|---|---|---|",
            *rows,
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *listed,
            "```",
            "",
        ]
    )


def _write(root: Path, name: str, text: str) -> None:
    """Write a page where it differs, so that Sphinx reads again only what changed."""
    path = root / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def assemble(source: Path) -> Mapping[str, str]:
    """Put every page of the site into a folder; the pages by name. Pages that are no longer made are removed."""
    root = spec_root()
    wanted = {
        str(path.relative_to(root).with_suffix("")): path.read_text("utf-8")
        for path in sorted([*root.glob("*.md"), *root.glob("decisions/*.md")])
        if path.stem not in ("README", "0000-template")
    }
    made = generated()
    twice = sorted(wanted.keys() & made.keys())
    if twice:
        raise DamagedError(f"{twice[0]} is both written and generated")
    wanted |= made
    source.mkdir(parents=True, exist_ok=True)
    for path in source.rglob("*.md"):
        if str(path.relative_to(source).with_suffix("")) not in wanted:
            path.unlink()
    for name, text in wanted.items():
        _write(source, name, text)
    static = Path(str(resources.files("quantspec_conformance") / "site" / "static"))
    shutil.copytree(static, source / "_static", dirs_exist_ok=True)
    shutil.copyfile(root / "conf.py", source / "conf.py")
    return wanted


def build(out: Path, *, jobs: int = 2) -> tuple[int, float]:
    """Build the site into out/html; pages and seconds. UsageError where Sphinx warns: its messages went to stderr."""
    from sphinx.cmd.build import build_main

    started = time.monotonic()
    made = assemble(out / "source")
    # everything is read anew (-E): pages hang on rules, cases and source lines that Sphinx does not watch
    arguments = [
        "-E",
        "-a",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-n",
        "-q",
        "-j",
        str(jobs),
        "-d",
        str(out / "doctrees"),
    ]
    if build_main([*arguments, str(out / "source"), str(out / "html")]) != 0:
        raise UsageError("the site was not built without warnings; they are listed above")
    return len(made), time.monotonic() - started
