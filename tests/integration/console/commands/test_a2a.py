"""`manage.py a2a`: its subcommands."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from a2a_console.management.commands.a2a import Command
from tests.integration.console.commands import a2a


def test_an_unknown_subcommand_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match="invalid choice: 'nonsense'"):
        a2a("nonsense")


def test_its_help_lists_every_subcommand() -> None:
    told = Command().create_parser("manage.py", "a2a").format_help()
    for name in ("tasks", "cancel", "why"):
        assert f"\n    {name} " in told
