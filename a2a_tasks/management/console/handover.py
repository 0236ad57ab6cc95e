"""Make a fresh link to the page on which a task's secrets are handed over. Links before it open nothing any more."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.audit import actor
from a2a_tasks.operations.hand_over import fresh_link
from a2a_tasks.protocol.errors import A2AError

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Of which task."""
    parser.add_argument("key", metavar="NUMBER", help="the task's number, as `a2a waiting` has it")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Say the link: it is shown here and nowhere again."""
    try:
        link = async_to_sync(fresh_link)(int(options["key"].removeprefix("#")), by=actor())
    except A2AError as fault:
        raise CommandError(fault.message) from None
    except (ValueError, OverflowError):
        raise CommandError(f"{options['key']} is not a number of a task") from None
    command.stdout.write(f"{link.url}  until {link.expires_at:%Y-%m-%d %H:%M} UTC")
