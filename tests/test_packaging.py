"""What is installed, and who may import whom. Runs from a checkout and from the wheel alone."""

import ast
import sys
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import quantspec
import quantspec_cl
import quantspec_conformance
from quantspec_conformance.spec import spec_root

PACKAGES = {module.__name__: Path(module.__path__[0]) for module in (quantspec, quantspec_cl, quantspec_conformance)}
MAY_IMPORT = {
    "quantspec": {"numpy", "ml_dtypes"},
    "quantspec_cl": {"numpy", "ml_dtypes", "pyopencl", "quantspec"},
    "quantspec_conformance": {
        "click", "jsonschema", "ml_dtypes", "numpy", "plotext", "quantspec", "quantspec_cl", "rich", "safetensors",
        "jinja2", "markupsafe",
        "docutils", "latex2mathml", "pygments", "sphinx",  # the site: extra `docs`
        "hypothesis", "pytest",  # what `testing` offers to those who have them
    },
}  # fmt: skip
#: one module's own: the run under a memory checker records what the device is asked
ALSO = {"runtimecheck/exercise.py": {"pyopencl"}}
#: what the kernels may take from the reference: records, tables and checks; their arithmetic is their own
CHECKS = {
    "check_shape",
    "check_array_shape",
    "require_canonical",
    "require_canonical_codec",
    "require_codec",
    "require_covered",
    "require_recipe",
    "require_record",
    "take_literals",
    "scale_type",
    "table_for",
    "value_format",
}


def taken(file: Path) -> set[str]:
    """Functions that a module takes from the reference: names imported from it that are no class and no constant."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in nodes if (node.module or "").split(".")[0] == "quantspec" for alias in node.names}
    return {name for name in names if name.islower()}


def imports(file: Path) -> set[str]:
    """Absolute names that a module imports, `a.b` for `from a.b import c`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_one_way(package: str) -> None:
    outside = {
        f"{file.relative_to(PACKAGES[package])}: {name}"
        for file in PACKAGES[package].rglob("*.py")
        for name in imports(file)
        if name.split(".")[0]
        not in MAY_IMPORT[package]
        | ALSO.get(file.relative_to(PACKAGES[package]).as_posix(), set())
        | sys.stdlib_module_names
        | {package}
    }
    assert outside == set()


def test_the_kernels_take_tables_and_checks_from_the_reference_and_no_arithmetic() -> None:
    functions = {
        f"{file.name}: {name}"
        for file in PACKAGES["quantspec_cl"].rglob("*.py")
        for name in taken(file)
        if name not in CHECKS | {"byte_count", "words_shape"}
    }
    assert functions == set()


def test_the_import_check_sees_a_forbidden_import(tmp_path: Path) -> None:
    file = tmp_path / "liar.py"
    file.write_text("def f():\n    from quantspec.quantize import quotient\n    import torch.nn\n")
    assert imports(file) == {"quantspec.quantize", "torch.nn"}
    assert taken(file) == {"quotient"}


def test_kernel_sources_rules_and_schemas_are_installed() -> None:
    assert {file.stem for file in (PACKAGES["quantspec_cl"] / "cl").glob("*.cl")} >= {
        "values",
        "scales",
        "quantize",
        "packing",
    }
    assert list((spec_root() / "rules").glob("*.toml"))
    assert (resources.files("quantspec") / "presets.toml").is_file()
    assert list((spec_root() / "decisions").glob("*.md"))
    assert {"0-terms.md", "8-conformance.md", "index.md", "conf.py", "deviations.toml"} <= {
        file.name for file in spec_root().iterdir()
    }
    harness = PACKAGES["quantspec_conformance"]
    assert (harness / "vectors" / "doc.json").exists()
    assert list((harness / "site" / "templates").iterdir()) and list((harness / "site" / "static").iterdir())
    assert list((PACKAGES["quantspec_conformance"] / "schemas").glob("*.json"))
    assert all((path / "py.typed").exists() for path in PACKAGES.values())


def test_the_command_belongs_to_the_harness() -> None:
    (command,) = entry_points(group="console_scripts", name="quantspec")
    assert command.value == "quantspec_conformance.cli:main"
