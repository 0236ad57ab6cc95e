"""How the host does: what is under way, what ended in a period, by agent and by tenant, and how long it took."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import BaseCommand
from django.db.models import QuerySet

from a2a_tasks.operations.figures import PERIODS, Line, report
from a2a_tasks.store.figures import Number, in_words

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Of which period."""
    parser.add_argument("--period", choices=list(PERIODS), default="hour")


def handle(command: BaseCommand, options: Mapping[str, Any]) -> None:
    """Write the same numbers as the dashboard's, for all tenants."""
    found = report(PERIODS[options["period"]], _all, whose=None, of_host=True)
    _numbers(command, found.numbers)
    for beside in found.beside:
        command.stdout.write(f"\n{beside.title}")
        _numbers(command, beside.numbers)
    _lines(command, "agent", found.agents)
    _lines(command, "tenant", found.tenants)


def _all(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows


def _numbers(command: BaseCommand, numbers: Iterable[Number]) -> None:
    for number in numbers:
        command.stdout.write(f"{number.text:>12}  {number.label}")


def _lines(command: BaseCommand, what: str, lines: Iterable[Line]) -> None:
    head = (
        f"{'ended':>9} {'failed':>7} {'p50':>10} {'p95':>10} {'running':>8} {'queued':>7}  {what}"
    )
    command.stdout.write(f"\n{head}")
    for line in lines:
        took = f"{in_words(line.p50, 's'):>10} {in_words(line.p95, 's'):>10}"
        counts = f"{line.ended:>9} {line.failed:>7}"
        command.stdout.write(
            f"{counts} {took} {line.running:>8} {line.queued:>7}  {line.name or '(none)'}"
        )
