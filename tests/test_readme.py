"""The README's examples run, and print what it says they print."""

import doctest
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.opencl
@pytest.mark.skipif(not README.exists(), reason="the README is not part of the wheel")
def test_the_examples_of_the_readme_print_what_it_says() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert tried >= 15
    assert failed == 0


def test_the_check_sees_a_wrong_example(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> 1 + 1\n3\n\n```\n")
    failed, _ = doctest.testfile(str(page), module_relative=False, report=False)
    assert failed == 1
