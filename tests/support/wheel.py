"""The wheel, built from a copy of the checkout, because setuptools writes beside the sources."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import ROOT

__all__ = ["APPS", "PIP", "build_wheel"]

APPS = (
    "a2a_console",
    "a2a_doors",
    "a2a_frameworks",
    "a2a_grpc",
    "a2a_host",
    "a2a_project",
    "a2a_push",
    "a2a_tasks",
)
METADATA = ("pyproject.toml", "README.md", "LICENSE")
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def build_wheel(target: Path) -> Path:
    """Build it in this directory. Raises AssertionError with the output if that fails."""
    with tempfile.TemporaryDirectory(prefix="a2a-source-") as folder:
        for app in APPS:
            copy = Path(folder, app)
            shutil.copytree(ROOT / app, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for file in METADATA:
            shutil.copy(ROOT / file, folder)
        build = ("wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir")
        done = subprocess.run(  # noqa: S603 - our own command
            [*PIP, *build, str(target), folder], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = target.glob("*.whl")
    return built
