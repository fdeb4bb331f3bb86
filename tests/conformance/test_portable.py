"""The data of the suite are the same on every machine: no maths library makes them, and no width of vectors changes a bit."""

import ast
import hashlib
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quantspec_conformance import draws, families
from quantspec_conformance.draws import Draws
from quantspec_conformance.implementations.served import environment
from quantspec_conformance.suite import generate
from quantspec_conformance.suite.store import vectors_root

SOURCES = [
    *sorted(Path(generate.__path__[0]).glob("*.py")),
    Path(families.__file__),
    Path(draws.__file__),
]
#: What the generator may use of numpy: copies, integers, comparisons, and operations that IEEE 754 fixes to the bit.
NUMPY = {
    "abs", "append", "arange", "argmax", "array", "asarray", "ascontiguousarray", "bool_", "clip", "concatenate", "empty",
    "errstate", "float16", "float32", "float64", "frombuffer", "full", "inf", "int64", "isfinite", "ldexp", "max", "maximum",
    "minimum", "ndarray", "ones", "prod", "random", "repeat", "resize", "stack", "tile", "uint16", "uint32", "uint64", "uint8",
    "unique", "where", "zeros", "zeros_like",
}  # fmt: skip
RANDOM = {"Philox", "BitGenerator", "Generator"}  # the last two only as types
MATH = {"prod", "frexp", "ldexp"}
#: Methods of generators and arrays whose results may differ: by version, by library, by the order of a sum.
METHODS = {
    "standard_normal", "normal", "uniform", "exponential", "standard_exponential", "gamma", "lognormal", "permutation",
    "permuted", "shuffle", "bytes", "mean", "std", "var", "dot", "cumsum", "cumprod", "trace",
}  # fmt: skip
#: Of those, the methods that Draws has under the same name.
OURS = {"normal"}


def faults(source: str) -> list[str]:
    """What in a module may give other bits elsewhere."""
    found = []
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name not in NUMPY:
                found.append(f"np.{name}")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="np"), attr="random"), attr=name) if (
                name not in RANDOM
            ):
                found.append(f"np.random.{name}")
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name not in MATH:
                found.append(f"math.{name}")
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS - OURS:
                found.append(f".{name}()")
            case ast.Call(func=ast.Attribute(attr="sum"), keywords=keywords) if "dtype" not in {
                k.arg for k in keywords
            }:
                found.append(ast.unparse(node))  # of floats, its order would show
            case ast.Call(func=ast.Name(id="pow")) | ast.Call(func=ast.Attribute(attr="Generator")):
                found.append(ast.unparse(node))
            case ast.BinOp(op=ast.Pow(), left=left, right=right) if not (_whole(left) and _whole(right)):
                found.append(ast.unparse(node))
            case ast.ImportFrom(module="numpy" | "math" | "cmath" | "random" | "scipy" as module):
                found.append(f"from {module}")
            case ast.Import(names=names):
                found += [f"import {n.name}" for n in names if n.name in ("cmath", "random", "scipy", "statistics")]
    return found


def _whole(node: ast.expr) -> bool:
    """Whether an operand is a whole number that stands there."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_maths_library_makes_data(path: Path) -> None:
    assert faults(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "liar",
    [
        "np.exp2(x)", "np.power(2, x)", "np.log(x)", "np.sin(x)", "np.sqrt(x)", "np.linspace(0, 9, 4)", "np.mean(x)",
        "math.sin(1)", "math.pow(2, 3)", "2.0 ** -20", "x ** 2", "2 ** x", "pow(2, x)", "rng.standard_normal(4)",
        "rng.uniform(0, 1)", "rng.permutation(4)", "np.random.default_rng(0)", "np.random.Generator(bits)", "x.std()", "x.sum()",
        "from numpy import exp2", "from math import exp", "import random",
    ],
)  # fmt: skip
def test_a_planted_liar_is_seen(liar: str) -> None:
    assert faults(liar), liar


def test_harmless_words_are_not() -> None:
    assert faults("y = np.where(x > 2**31, x & np.uint32(1), 0)\nz: np.random.BitGenerator\nmath.ldexp(1.0, -9)") == []


def test_draws_are_pinned() -> None:
    """The words of Philox, and all that is made of them: a change of any is a change of the suite."""
    drawing = Draws(np.random.Philox(key=7))
    parts = [
        drawing.words(5), drawing.integers(-3, 4, (3, 5)), drawing.integers(0, 1 << 32, (7,), np.uint32),
        drawing.integers(0, 3 << 30, (50,)), drawing.choice([3, 1, 4, 1, 5], (9,)), drawing.random((3,)),
        drawing.sums((2, 3)), drawing.normal((5,)), drawing.integers(5, 6), drawing.words(1),
    ]  # fmt: skip
    whole = b"".join(np.ascontiguousarray(part).astype(part.dtype.newbyteorder("<")).tobytes() for part in parts)
    assert hashlib.sha256(whole).hexdigest()[:16] == "b199e066a3cfd393"


def test_draws_are_evenly_spread() -> None:
    drawing = Draws(np.random.Philox(key=11))
    counts = np.bincount(drawing.integers(0, 7, (70_000,)), minlength=7)
    assert counts.min() > 9_600 and counts.max() < 10_400
    assert drawing.random((10_000,)).min() >= 0 and drawing.random((10_000,)).max() < 1
    sums = drawing.sums((40_000,))
    assert abs(sums.mean()) < 0.03 * 2**20.5 and 0.98 < sums.std() / 2**20.5 < 1.02
    assert np.abs(sums).max() < 3 << 21
    with pytest.raises(ValueError, match="allowed"):
        drawing.integers(0, 0)
    with pytest.raises(ValueError, match="allowed"):
        drawing.integers(0, (1 << 32) + 1)
    assert drawing.integers(4, 5, (3,)).tolist() == [4, 4, 4] and drawing.integers(0, 9, (0,)).size == 0


def test_a_generator_goes_on_where_it_stands() -> None:
    generator = np.random.Generator(np.random.Philox(key=3))
    first, second = Draws.of(generator).words(4), Draws.of(generator).words(4)
    assert np.concatenate([first, second]).tolist() == Draws(np.random.Philox(key=3)).words(8).tolist()


#: The generator where numpy finds no wide vectors.
GENERATE = """
import sys
from pathlib import Path
from numpy._core import _multiarray_umath as umath
from quantspec_conformance.suite.generate.release import write_suites

assert not [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]], "vectors are still wide"
write_suites(Path(sys.argv[1]), chosen=lambda place: place.format == "e2m1" and place.op in ("quantize", "encode"))
"""
RUN = ("run", "--impl", "reference", "--level", "1", "--select", "value:e2m1 op:quantize suite:pairwise,batch-shape")


def _python(variables: dict[str, str], *words: str) -> None:
    done = subprocess.run([sys.executable, *words], env=environment(variables), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_machine_makes_the_same_data_and_takes_our_results(tmp_path: Path) -> None:
    umath = importlib.import_module("numpy._core._multiarray_umath")  # numpy says it nowhere else
    wide = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]]
    if not wide:
        pytest.skip("numpy dispatches nothing on this machine: there is no other one to play")
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(wide)}
    _python(plain, "-c", GENERATE, str(tmp_path / "vectors"))
    written = [path for path in (tmp_path / "vectors").rglob("*.*") if path.name != "ids.json"]
    assert len(written) > 10
    for path in written:
        assert path.read_bytes() == (vectors_root() / path.relative_to(tmp_path / "vectors")).read_bytes(), path
    for variables, other in (({}, plain), (plain, {})):
        result = str(tmp_path / f"{len(variables)}.jsonl")
        _python(variables, "-m", "quantspec_conformance", *RUN, "--out", result)
        _python(other, "-m", "quantspec_conformance", "verify", result)
