"""`manage.py a2a`: its subcommands."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.core.management import CommandError

from tests import ROOT
from tests.integration.console.commands import a2a


def test_an_unknown_subcommand_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match="invalid choice: 'nonsense'"):
        a2a("nonsense")


def test_its_help_lists_every_subcommand() -> None:
    manage = [sys.executable, str(ROOT / "manage.py"), "a2a", "--help"]
    told = subprocess.run(manage, capture_output=True, text=True, check=True).stdout  # noqa: S603
    for name in ("tasks", "cancel", "why"):
        assert f"\n    {name} " in told
