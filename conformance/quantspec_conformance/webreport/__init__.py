"""A report of runs as static pages: matrix, implementations, formats, rules, cases bit by bit. No server, no network."""

from .runs import ReportRun
from .write import write_report

__all__ = ["ReportRun", "write_report"]
