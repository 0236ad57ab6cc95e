"""`manage.py api_keys create|list|rotate|revoke`: the API keys of callers."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from a2a_tasks.access.api_keys import LIFE, issue, list_keys, revoke, rotate

__all__ = ["Command"]

ONCE = "This is the only time it is shown."


class Command(BaseCommand):
    """The command: it makes, lists, rotates and revokes API keys."""

    help = "Make, list, rotate and revoke API keys. A key is shown once, when it is made; then it is known by its prefix."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a subcommand for each action."""
        words = parser.add_subparsers(dest="word", required=True)
        create = words.add_parser("create", help="make a key and show it, once")
        create.add_argument("name", help="the purpose of the key")
        create.add_argument("--scopes", default="", help="scopes, separated by spaces")
        create.add_argument("--tenant", default="")
        create.add_argument("--rate", default="", help="a rate limit, such as 600/m burst 100")
        create.add_argument(
            "--days",
            type=float,
            default=LIFE.days,
            help=f"days until the key expires (default {LIFE.days}; 0 = never)",
        )
        words.add_parser("list", help="show all keys")
        turn = words.add_parser("rotate", help="give a key a new secret and show it, once")
        turn.add_argument("prefix")
        turn.add_argument(
            "--overlap-hours",
            type=float,
            default=24.0,
            help="hours for which the old secret remains valid (default 24)",
        )
        turn.add_argument("--days", type=float, help="days until the key expires (0 = no change)")
        end = words.add_parser("revoke", help="revoke a key")
        end.add_argument("prefix")

    def handle(self, *args: Any, word: str, **options: Any) -> None:
        """Run the subcommand."""
        getattr(self, f"_{word}")(options)

    def _create(self, options: dict[str, Any]) -> None:
        try:
            issued = issue(
                options["name"],
                tenant=options["tenant"],
                scopes=options["scopes"].split(),
                expires_at=_end(options["days"]),
                rate=options["rate"],
            )
        except ValueError as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(issued.key)
        self.stderr.write(ONCE)

    def _list(self, options: dict[str, Any]) -> None:
        for row in list_keys():
            about = [row.prefix, _state(row), row.name, f"scopes: {row.scopes or '-'}"]
            about += [f"tenant: {row.tenant}"] if row.tenant else []
            about += [f"rate: {row.rate}"] if row.rate else []
            about += [f"used: {_moment(row.last_used_at)}"]
            if row.previous_until and row.previous_until > timezone.now():
                used = _moment(row.previous_used_at)
                about.append(f"old secret until {_moment(row.previous_until)}, used: {used}")
            self.stdout.write("  ".join(about))

    def _rotate(self, options: dict[str, Any]) -> None:
        overlap = timedelta(hours=_positive(options["overlap_hours"]))
        try:
            issued = rotate(options["prefix"], overlap, _end(options["days"] or 0.0))
        except ValueError as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(issued.key)
        self.stderr.write(f"{ONCE} The old one goes on until {_moment(issued.row.previous_until)}.")

    def _revoke(self, options: dict[str, Any]) -> None:
        if not revoke(options["prefix"]):
            raise CommandError("There is no such key, or it was revoked before")
        self.stderr.write("Revoked.")


def _positive(number: float) -> float:
    if not 0 <= number < 1_000_000:  # noqa: PLR2004 - a century in hours; NaN is excluded, too
        raise CommandError("Days and hours must not be negative, and not without end.")
    return number


def _end(days: float) -> datetime | None:
    return timezone.now() + timedelta(days=_positive(days)) if days else None


def _moment(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M") if at else "never"


def _state(row: Any) -> str:
    if row.state != "live":
        return str(row.state)
    return f"until {_moment(row.expires_at)}" if row.expires_at else "without end"
