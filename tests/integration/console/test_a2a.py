"""How `manage.py a2a` finds its subcommands, and what each of them has to bring."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import pytest
from django.core.management import CommandError

from a2a_tasks.management.commands.a2a import subcommands
from tests import ROOT
from tests.integration.console import a2a

FOUND = sorted(subcommands())


@pytest.mark.parametrize(("name", "module"), FOUND, ids=[name for name, _ in FOUND])
def test_a_subcommand_says_what_it_does_and_does_it(name: str, module: ModuleType) -> None:
    first, _, _ = (inspect.getdoc(module) or "").partition("\n")
    assert first.endswith(".")
    assert callable(module.add_arguments)
    assert callable(module.handle)


def test_names_are_given_once() -> None:
    names = [name for name, _ in FOUND]
    assert names == sorted(set(names))


def test_an_unknown_subcommand_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match="invalid choice: 'nonsense'"):
        a2a("nonsense")


def test_its_help_lists_every_subcommand() -> None:
    manage = [sys.executable, str(ROOT / "manage.py"), "a2a", "--help"]
    told = subprocess.run(manage, capture_output=True, text=True, check=True).stdout  # noqa: S603
    for name, _ in FOUND:
        assert f"\n    {name} " in told
