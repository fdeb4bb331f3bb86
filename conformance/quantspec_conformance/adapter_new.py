"""`adapter new`: a template of an adapter, copied to begin with."""

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from .errors import UsageError
from .outside import printable, reason_of

__all__ = ["LANGUAGES", "new_adapter", "next_steps"]


@dataclass(frozen=True, slots=True)
class Template:
    """Files of a template, what builds it, and the command that runs it, in the folder."""

    files: tuple[str, ...]
    build: str
    command: str
    own: str  #: file with the places for one's own code


LANGUAGES = {
    "python": Template(("adapter.py",), "", "python3 adapter.py", "adapter.py"),
    "c": Template(("adapter.c", "Makefile"), "make", "./adapter", "adapter.c"),
    "rust": Template(
        ("Cargo.toml", "src/main.rs"), "cargo build --release --offline", "target/release/adapter", "src/main.rs"
    ),
    "js": Template(("adapter.mjs",), "", "node adapter.mjs", "adapter.mjs"),
}


def new_adapter(language: str, folder: Path) -> list[Path]:
    """Copy the template of a language into a folder, made if it is not there; the files written. UsageError for another
    language and where a file would be overwritten: then nothing is written."""
    template = LANGUAGES.get(language)
    if template is None:
        raise UsageError(f"{printable(language)!r} is no language of a template; allowed: {', '.join(LANGUAGES)}")
    targets = [folder / name for name in template.files]
    for target in targets:
        if target.exists() or target.is_symlink():
            raise UsageError(f"{target} is there already; nothing is overwritten")
    source = files("quantspec_conformance").joinpath("templates", language)
    try:
        for name, target in zip(template.files, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(_named(source, name).read_bytes())
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {reason_of(error)}") from None
    return targets


def next_steps(language: str, folder: Path) -> list[str]:
    """What to type next, a line each."""
    template = LANGUAGES[language]
    enter = [] if folder == Path() else [f"cd {folder}"]
    build = [template.build] if template.build else []
    return [
        *enter,
        *build,
        f"quantspec adapter check 'exec:{template.command}'      # before you change anything: all ok",
        f"$EDITOR {template.own}                   # your own code where it says HERE",
        f"quantspec run --impl 'exec:{template.command}'         # the first row of the matrix",
    ]


def _named(source: Traversable, name: str) -> Traversable:
    for part in name.split("/"):
        source = source.joinpath(part)
    return source
