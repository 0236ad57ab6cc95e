"""Django's `runserver` serves the ASGI application, so the protocol too, though daphne is no installed app."""

from __future__ import annotations

from daphne.management.commands.runserver import Command
from django.core.management import get_commands, load_command_class


def test_it_is_that_of_daphne() -> None:
    assert isinstance(load_command_class(get_commands()["runserver"], "runserver"), Command)
