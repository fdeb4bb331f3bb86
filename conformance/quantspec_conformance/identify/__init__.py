"""Identify: which recipe, codec and container an implementation realises, found by asking it. Nothing has to be declared."""

from .implementation import FORMATS, identify
from .verdict import Found

__all__ = ["FORMATS", "Found", "identify"]
