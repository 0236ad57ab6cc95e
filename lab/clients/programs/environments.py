"""One environment for each set of pins, made once and kept in `var/clients` (not in git)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import fasteners

from tests import ROOT

__all__ = ["HERE", "NODE", "Unavailable", "node_modules", "python_of"]

HERE = Path(__file__).parent
KEPT = ROOT / "var" / "clients"
#: Why clients in JavaScript cannot run here, or nothing.
NODE = "" if shutil.which("node") and shutil.which("npm") else "node is not installed"
_MADE = "made"
_UV = HERE / "uv.txt"
_SECONDS = 300.0


class Unavailable(Exception):
    """The environment cannot be made; the text says why."""


def python_of(pins: Path, say: Callable[[str], None]) -> Path:
    """The Python of a virtual environment with what the requirements file pins. Raises Unavailable."""

    def install(place: Path) -> None:
        uv = str(_python(_UV, _install_by_pip, say).with_name("uv"))
        _run(
            [uv, "venv", "--quiet", "--python", sys.executable, str(place)], place, "uv venv fails"
        )
        asked = ["--quiet", "--python", str(place / "bin" / "python"), "-r", str(pins)]
        _run([uv, "pip", "install", *asked], place, "the Python package index was asked (uv)")

    return _python(pins, install, say)


def _python(pins: Path, install: Callable[[Path], None], say: Callable[[str], None]) -> Path:
    versions = [sys.version.encode(), sys.base_prefix.encode()]
    return _kept(pins.stem, [pins.read_bytes(), *versions], install, say) / "bin" / "python"


def _install_by_pip(place: Path) -> None:
    _run([sys.executable, "-m", "venv", str(place)], place, "Python's venv module fails")
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    asked = ["--disable-pip-version-check", "-r", str(_UV)]
    _run([*pip, *asked], place, "the Python package index was asked (pip)")


def node_modules(pins: Path, say: Callable[[str], None]) -> Path:
    """A folder with the node modules that the lock file in the folder `pins` names. Raises Unavailable."""
    files = [pins / "package.json", pins / "package-lock.json"]

    def install(place: Path) -> None:
        for file in files:
            shutil.copy(file, place)
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        _run(["npm", "ci", *quiet], place, "the npm registry was asked (npm)")

    return _kept(pins.name, [file.read_bytes() for file in files], install, say)


def _kept(
    name: str,
    told: Iterable[bytes],
    install: Callable[[Path], None],
    say: Callable[[str], None],
) -> Path:
    """The environment of that name for these pins: the one that was made before, or a new one.

    Two runs of the tests may come at once: one of them makes it. A half-made one is made again.
    """
    key = hashlib.sha256(b"\0".join(told)).hexdigest()[:16]
    place = KEPT / f"{name}-{key}"
    KEPT.mkdir(parents=True, exist_ok=True)
    with fasteners.InterProcessLock(KEPT / f"{name}.lock"):
        if not (place / _MADE).exists():
            say(f"Making the environment of the client {name} (kept in {place})")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            install(place)
            (place / _MADE).touch()
    return place


def _run(command: list[str], where: Path, asking: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(  # noqa: S603 - our own command lines
            command, cwd=where, env=environ, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{asking}, and there was no answer in {_SECONDS:.0f} s") from None
    if done.returncode:
        told = (done.stderr or done.stdout).strip()[-2000:]
        raise Unavailable(f"{asking}: {told}")
