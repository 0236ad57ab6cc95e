"""Guests are found by entry points: of installed packages, and of a checkout that is not installed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from a2a_frameworks import hosting
from a2a_frameworks.table import FRAMEWORKS
from a2a_tasks import guests
from a2a_tasks.agents.frameworks import Framework, find_install_line, list_frameworks
from a2a_tasks.execution import run_log_handler
from tests import ROOT

METADATA = "Metadata-Version: 2.1\nName: afar\nVersion: 1\n"
TABLE = """
from a2a_tasks.agents.frameworks import Framework

ROWS = (Framework("no_such", "no-such-sdk>=2", "Runner", "afar_adapters:Adapter", "runner"),)
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Entry points are read once a process."""
    guests.list_guests.cache_clear()
    yield
    guests.list_guests.cache_clear()


@pytest.fixture
def afar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of an installed package with an adapter, as pip leaves it."""
    (tmp_path / "afar_adapters.py").write_text(TABLE)
    (metadata := tmp_path / "afar-1.dist-info").mkdir()
    (metadata / "METADATA").write_text(METADATA)
    line = f"[{guests.FRAMEWORKS}]\nafar = afar_adapters:ROWS\n"
    (metadata / "entry_points.txt").write_text(line)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_every_framework_of_the_table_is_found() -> None:
    assert list(list_frameworks()) == list(FRAMEWORKS)


@pytest.mark.checkout
def test_a_worker_has_the_adapters_of_the_host() -> None:
    host, worker = (
        tomllib.loads((ROOT / path).read_text("utf-8"))["project"]["entry-points"]
        for path in ("pyproject.toml", "worker/pyproject.toml")
    )
    assert worker == {guests.FRAMEWORKS: host[guests.FRAMEWORKS]}


@pytest.mark.checkout
def test_lines_of_our_packages_are_not_those_of_an_agent() -> None:
    packages = {path.name for path in ROOT.glob("a2a_*")}
    assert [name for name in packages if f"{name}." not in run_log_handler.OURS] == []


@pytest.mark.usefixtures("afar")
class TestAnotherPackage:
    def test_brings_an_adapter(self) -> None:
        class Runner:
            """An agent of that framework."""

        Runner.__module__ = "no_such.agents"
        found = hosting.find_adapter(Runner())
        assert found == Framework(
            "no_such", "no-such-sdk>=2", "Runner", "afar_adapters:Adapter", "runner"
        )

    def test_names_the_line_that_installs_its_framework(self) -> None:
        assert find_install_line("no_such") == "pip install 'no-such-sdk>=2'"


class TestWithoutACheckout:
    @pytest.fixture(autouse=True)
    def elsewhere(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """The package is in a directory without its `pyproject.toml`."""
        monkeypatch.setattr(guests, "PROJECT", tmp_path / "pyproject.toml")

    def test_the_guests_are_those_of_installed_packages(self) -> None:
        installed = {point.name for point in entry_points(group=guests.FRAMEWORKS)}
        assert guests.list_guests(guests.FRAMEWORKS).keys() == installed

    def test_the_adapters_of_the_host_are_there_without_metadata(self) -> None:
        rows = [hosting.find_adapter(make(row)) for row in FRAMEWORKS]
        assert rows == list(FRAMEWORKS)


def make(row: Framework) -> object:
    """An object that looks like an agent of the framework."""
    return type(row.kind, (), {"__module__": f"{row.package}.agents"})()


def test_a_guest_that_is_not_there_is_named() -> None:
    with pytest.raises(guests.GuestMissing, match=r"'smtp' of the group a2a_host\.bindings"):
        guests.load_guest(guests.BINDINGS, "smtp")
