"""Kinds of arguments that several commands take."""

import os
from pathlib import Path
from typing import Any

import click

__all__ = ["FILE"]


class _File(click.Path):
    """A path; an empty text is none, though pathlib reads it as the folder that the command runs in."""

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value).strip():
            self.fail("is empty; allowed: the path of a file or folder", param, ctx)
        return super().convert(value, param, ctx)


FILE = _File(path_type=Path)
