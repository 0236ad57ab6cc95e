"""Frameworks in environments of their own: each folder has what `make lab-frameworks` needs. Their tests run there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from a2a_frameworks.table import FRAMEWORKS
from tests import ROOT

HERE = ROOT / "lab" / "frameworks"
FOLDERS = sorted(path for path in HERE.iterdir() if (path / "__init__.py").exists())


def read_lines(path: Path) -> list[str]:
    """The lines of a file of requirements, without comments."""
    lines = (line.split("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
class TestFolder:
    def test_its_requirements_are_pinned(self, folder: Path) -> None:
        shared, *own = read_lines(folder / "requirements.txt")
        assert shared == "-r ../requirements.txt"
        assert own
        assert all("==" in line for line in [*own, *read_lines(HERE / "requirements.txt")])

    def test_it_has_an_agent_and_a_test(self, folder: Path) -> None:
        assert "host(" in (folder / "agents.py").read_text("utf-8")
        assert list(folder.glob("test_*.py"))

    @pytest.mark.checkout
    def test_its_adapter_is_named_like_it(self, folder: Path) -> None:
        adapter = folder.name.removesuffix("_v03")  # one adapter runs executors for both versions
        assert (ROOT / "a2a_frameworks" / adapter / "agent.py").exists()


# Executors of 0.3 are those of the a2a-sdk to the table.
@pytest.mark.parametrize("name", [each.name for each in FOLDERS if each.name != "executor_v03"])
def test_the_version_of_a_framework_is_one_that_its_adapter_takes(name: str) -> None:
    rows = {row.adapter.split(":")[0].rpartition(".")[2]: row for row in FRAMEWORKS}
    wanted = Requirement(rows[name].requirement)
    pins = dict(line.split("==") for line in read_lines(HERE / name / "requirements.txt")[1:])
    (pin,) = (pins[name] for name in pins if name.partition("[")[0] == wanted.name)
    assert pin in wanted.specifier


def test_there_are_five() -> None:
    assert len(FOLDERS) == 5


def test_the_environments_have_what_a_worker_needs_in_the_versions_of_the_host() -> None:
    shared = dict(line.split("==") for line in read_lines(HERE / "requirements.txt"))
    project = tomllib.loads((ROOT / "worker" / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {Requirement(line).name.lower() for line in project["dependencies"]}
    names = {name.partition("[")[0] for name in shared}
    # No version of this one suits all frameworks.
    assert needed - names == {"opentelemetry-api"}
    for file in HERE.glob("*/requirements.txt"):
        assert any(line.startswith("opentelemetry-api==") for line in read_lines(file)), file
    pinned = [*read_lines(ROOT / "constraints.txt"), *read_lines(ROOT / "requirements-test.txt")]
    known = dict(line.lower().split("==") for line in pinned if "==" in line)
    assert shared == {name: known[name.partition("[")[0]] for name in shared}
