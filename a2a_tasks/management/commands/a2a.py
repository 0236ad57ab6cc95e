"""`manage.py a2a <subcommand>`: what the console shows and does, by command.

Every module of a `management/console` package of an app is a subcommand of its name, with hyphens for underscores:

    '''What it does, in one line for the list of subcommands. The whole docstring is its help.'''

    def add_arguments(parser): ...
    def handle(command, options): ...   # writes to command.stdout, raises CommandError
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from a2a_tasks.protocol.errors import Overloaded

__all__ = ["Command", "subcommands"]

PACKAGE = "management.console"


class Command(BaseCommand):
    """Hands over to a subcommand."""

    help = "What the console shows and does, by command. `manage.py a2a <subcommand> --help` tells more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One parser for each subcommand."""
        words = parser.add_subparsers(dest="subcommand", metavar="subcommand", required=True)
        for name, module in sorted(subcommands()):
            text = inspect.getdoc(module) or ""
            one = words.add_parser(
                name,
                help=text.partition("\n")[0],
                description=text,
                formatter_class=RawDescriptionHelpFormatter,
            )
            module.add_arguments(one)
            one.set_defaults(module=module)

    def handle(self, *args: Any, module: ModuleType, **options: Any) -> None:
        """Have it done. Whoever reads no further (`| head`) ends it quietly."""
        try:
            module.handle(self, options)
        except BrokenPipeError:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # for Python's last flush
        except (Overloaded, DatabaseError) as fault:
            raise CommandError(f"The database did not do it: {fault}") from fault


def subcommands() -> Iterator[tuple[str, ModuleType]]:
    """The subcommands of all apps, each with its name."""
    for app in apps.get_app_configs():
        folder = Path(app.path, *PACKAGE.split("."))
        for found in pkgutil.iter_modules([str(folder)]):
            name = found.name.replace("_", "-")
            yield name, import_module(f"{app.name}.{PACKAGE}.{found.name}")
