"""What a run of the tests leaves in the checkout makes it fail."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.leftovers import Leftovers


def finished(plugin: Leftovers) -> int:
    """The exit status of a run without failures."""
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    plugin.pytest_sessionfinish(session)
    return int(session.exitstatus)


def test_a_new_file_fails_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    plugin = Leftovers(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hello").touch()
    assert finished(plugin) == pytest.ExitCode.TESTS_FAILED
    assert plugin.new == ["docs/hello"]


def test_a_file_that_is_gone_fails_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    plugin = Leftovers(tmp_path)
    (tmp_path / "old").unlink()
    assert finished(plugin) == pytest.ExitCode.TESTS_FAILED
    assert (plugin.new, plugin.gone) == ([], ["old"])


def test_a_folder_var_below_another_is_no_place_for_files(tmp_path: Path) -> None:
    plugin = Leftovers(tmp_path)
    (tmp_path / "docs" / "var").mkdir(parents=True)
    (tmp_path / "docs" / "var" / "hello").touch()
    assert finished(plugin) == pytest.ExitCode.TESTS_FAILED
    assert plugin.new == ["docs/var/hello"]


def test_caches_and_what_is_under_var_do_not(tmp_path: Path) -> None:
    plugin = Leftovers(tmp_path)
    for folder in ("__pycache__", "var", ".pytest_cache"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kept").touch()
    assert finished(plugin) == pytest.ExitCode.OK
    assert plugin.new == []
