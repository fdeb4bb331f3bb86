"""Headless Chromium for the tests of pages: one set of flags, one reason to skip."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["chromium", "missing_browser"]


def missing_browser() -> str:
    """Why there is no browser; "" where there is one."""
    found = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(found)} not installed (Debian: apt install chromium chromium-driver)" if found else ""


def chromium(profile: Path) -> Iterator[Any]:
    """A driver, quit at the end, with its profile in a folder. Skipped where there is none, unless QUANTSPEC_BROWSER=required."""
    reason = missing_browser()
    if reason and os.environ.get("QUANTSPEC_BROWSER") != "required":
        pytest.skip(reason)
    assert not reason, reason
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
