"""The kits: which parts are run, by what command, and in what environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from lab.frameworks.__main__ import install

__all__ = [
    "KITS",
    "PARTS",
    "Part",
    "Unavailable",
    "copy_kit",
    "list_requirements",
    "make_node_modules",
    "make_python",
    "read_version",
]

INSIDE = Path(__file__).parent / "inside"
KITS = ("a2a-tck", "a2a-tck-0.3", "a2a-itk", "a2a-inspector", "ard-spec")
#: Where the requirements of an environment are, in the folder of the kit.
PROJECTS = {"a2a-itk": "agents/python/v10", "a2a-itk-v03": "agents/python/v03"}
GIT = re.compile(r" @ git\+\S+@v")


class Unavailable(Exception):
    """Why a part cannot be run here."""


@dataclass(frozen=True)
class Part:
    """A part of a kit. In `command`, {host} is the address of the host, and {inside} where our programs are; the report has an ending that `reports` knows."""

    kit: str
    name: str
    #: The host's default agent; none if the kit starts its own host.
    agent: str
    command: tuple[str, ...]
    report: str
    #: The folder it runs in, and how many seconds it may take.
    folder: str = "."
    seconds: float = 1200
    #: Why it is not run.
    not_run: str = ""


def _tck_1_0(agent: str, *others: str) -> Part:
    place = f"{{host}}/agents/{agent}/a2a/1.0"
    run = ("run_tck.py", "--sut-host", place, *others)
    return Part("a2a-tck", agent, agent, run, "reports/junitreport.xml")


def _tck_0_3(category: str, binding: str) -> Part:
    place = "{host}/agents/asking/a2a/0.3"
    run = ("run_tck.py", "--sut-url", place, "--category", category, "--transports", binding)
    return Part("a2a-tck-0.3", f"{category}, {binding}", "asking", run, "reports/junit.xml")


def _itk(sdk: str) -> Part:
    run = ("{inside}/itk.py", sdk, "told.json")
    return Part("a2a-itk", sdk, "", run, "told.json")


CARDS = (
    "{host}/agents/demo/.well-known/agent-card.json",
    "{host}/agents/demo/a2a/0.3/.well-known/agent-card.json",
)
CATALOG = ("conformance/bin/conformance-test", "manifest", "{host}/.well-known/ai-catalog.json")
PARTS = (
    _tck_1_0("demo"),
    _tck_1_0("bare"),
    _tck_1_0("strict", "--", "-k", "Extension"),
    *(
        _tck_0_3(category, binding)
        for category in ("mandatory", "capabilities", "quality", "features")
        for binding in ("jsonrpc", "rest", "grpc")
    ),
    _tck_0_3("transport-equivalence", "jsonrpc,rest,grpc"),
    *map(_itk, ("python_v03", "python_v10", "ts_v03", "ts_v10")),
    Part("a2a-itk", "go, java, rust", "", (), "", not_run="needs the kit's container"),
    Part(
        "a2a-inspector",
        "card and messages",
        "demo",
        ("{inside}/inspector.py", "told.json", *CARDS),
        "told.json",
        "backend",
    ),
    Part("ard-spec", "catalog", "demo", CATALOG, "said.log"),
)


def read_version(checkout: Path) -> str:
    """Return the commit of a checkout, `-dirty` if it was changed since; `unknown` without one."""
    ask = [
        "git",
        "-C",
        str(checkout),
        "describe",
        "--always",
        "--exclude=*",
        "--abbrev=7",
        "--dirty",
    ]
    bounds = {**os.environ, "GIT_CEILING_DIRECTORIES": str(checkout.parent)}
    done = subprocess.run(ask, capture_output=True, text=True, check=False, env=bounds)
    return done.stdout.strip() or "unknown"


def copy_kit(checkout: Path, folder: Path) -> Path:
    """Copy a checkout, so that nothing is left in it."""
    left_out = shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__")
    copy = folder / "kit"
    shutil.copytree(checkout, copy, ignore=left_out, dirs_exist_ok=True)
    if checkout.name == "a2a-itk":
        (copy / "agents/repo/itk").mkdir(parents=True, exist_ok=True)
        (copy / "agents/repo/itk/main.py").touch()
    return copy


def make_python(name: str, folder: Path) -> Path:
    """Return the interpreter of an environment with what the copied kit requires. Raises Unavailable with pip's reason."""
    project = folder / "kit" / PROJECTS.get(name, "")
    requirements = folder / f"{name}.txt"
    requirements.write_text("\n".join(list_requirements(project, folder / f"{name}.lock")))
    environment = folder / name
    if fault := install(environment, requirements):
        raise Unavailable(f"it cannot be installed here: {fault}")
    return environment / "bin" / "python"


def make_node_modules(folder: Path) -> None:
    """Install what a part in JavaScript needs; the kit would install what its authors need, too. Raises Unavailable."""
    if not shutil.which("npm"):
        raise Unavailable("needs npm")
    install_it = ["npm", "install", "--omit=dev", "--no-audit", "--no-fund"]
    done = subprocess.run(install_it, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"it cannot be installed here: {done.stderr.strip().splitlines()[0]}")


def list_requirements(project: Path, lock: Path) -> list[str]:
    """Return what a kit requires; `lock` gets the versions of uv's lock, if there is one."""
    if not (project / "pyproject.toml").exists():
        return ["jsonschema"]  # ARD's tool needs nothing, and does more with it
    wanted = tomllib.loads((project / "pyproject.toml").read_text())["project"]["dependencies"]
    versions: dict[str, set[str]] = {}
    if (project / "uv.lock").exists():
        for package in tomllib.loads((project / "uv.lock").read_text())["package"]:
            if "registry" in package["source"]:
                versions.setdefault(package["name"], set()).add(package["version"])
    lock.write_text(
        "".join(f"{name}=={min(found)}\n" for name, found in versions.items() if len(found) == 1)
    )
    return [f"-c {lock}", *(GIT.sub("==", one) for one in wanted)]
