"""`manage.py webhooks`: list dead deliveries of webhooks, and send them again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from a2a_console.management.moments import moment
from a2a_push.models import Delivery
from a2a_push.store.delivery_selection import DeliverySelection
from a2a_push.store.replays import SLICE, replay
from a2a_push.store.retries import Prospect, forecast

__all__ = ["Command"]

#: The default number of lines of `list`.
LINES = 100
NARROWING = ("ids", "task", "agent", "receiver", "since", "until")


class Command(BaseCommand):
    """Subcommands that list and replay dead deliveries."""

    help = (
        "List dead deliveries, or send them again with their webhook-id, from the beginning of the schedule. "
        "Not sent: pending deliveries, those of deleted webhooks, and those to receivers that an operator disabled. "
        "Receivers that were disabled automatically are tried again. It can run beside the host, and be interrupted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a parser for each subcommand; both have the same filters."""
        words = parser.add_subparsers(dest="word", required=True)
        listing = words.add_parser("list", help="list dead deliveries, the oldest first")
        _add_narrowing(listing)
        listing.add_argument("--lines", type=int, default=LINES, help=f"lines (default {LINES})")
        again = words.add_parser("replay", help="send deliveries again")
        again.add_argument("ids", nargs="*", metavar="ID", help="webhook-ids of dead or delivered")
        _add_narrowing(again)
        again.add_argument("--all", action="store_true", help="all dead deliveries")
        again.add_argument(
            "--also-delivered",
            action="store_true",
            help="also send delivered ones, which then arrive twice",
        )
        again.add_argument("--dry-run", action="store_true", help="only count the deliveries")

    def handle(self, *, word: str, **options: Any) -> None:
        """Run the subcommand."""
        if word == "list":
            self._list(_choose(options), max(0, options["lines"]))
        else:
            self._replay(options)

    def _list(self, chosen: DeliverySelection, lines: int) -> None:
        rows = chosen.rows().select_related("task", "receiver").defer("body")
        for row in rows[:lines]:
            self.stdout.write(_line(row))
        total = chosen.rows().count()
        self.stdout.write(f"Dead: {total}" + (f", shown: {lines}" if total > lines else ""))

    def _replay(self, options: dict[str, Any]) -> None:
        if not options["all"] and not any(options[name] for name in NARROWING):
            raise CommandError(
                "Say which: ids, --task, --agent, --receiver, --since, --until or --all."
            )
        chosen = _choose(options)
        prospect = forecast(chosen.rows())
        if options["dry_run"]:
            self.stdout.write(f"Would be sent again: {prospect.sent}")
            self._tell(prospect)
            return
        keys = chosen.keys()
        done = self._send(keys)
        self.stdout.write(f"Will be sent again: {done}")
        left = len(set(options["ids"])) - done if options["ids"] else len(keys) - done
        if left:
            self.stdout.write(
                f"Left alone, being pending, without a webhook, held back, or unknown: {left}"
            )
        self._tell(prospect)

    def _tell(self, prospect: Prospect) -> None:
        if prospect.on_trial:
            self.stdout.write(
                f"Of these to receivers or webhooks that were given up, which are tried again: {prospect.on_trial}"
            )
        if prospect.held_back:
            self.stdout.write(
                f"Held back, because an operator disabled the endpoint: {prospect.held_back}"
            )

    def _send(self, keys: list[int]) -> int:
        done, shown = 0, self.stdout.isatty()
        for start in range(0, len(keys), SLICE):
            done += replay(keys[start : start + SLICE])
            if shown:
                self.stdout.write(f"\r{done} of {len(keys)} deliveries", ending="")
                self.stdout.flush()
        if shown:
            self.stdout.write("\r\x1b[K", ending="")
        return done


def _add_narrowing(parser: ArgumentParser) -> None:
    parser.add_argument("--task", default="", metavar="ID", help="only deliveries of this task")
    parser.add_argument("--agent", default="", metavar="SLUG", help="only deliveries of this agent")
    parser.add_argument(
        "--receiver", default="", metavar="URL", help="only deliveries to this URL; no query"
    )
    parser.add_argument(
        "--since", type=moment, metavar="TIME", help="created at or after this time"
    )
    parser.add_argument("--until", type=moment, metavar="TIME", help="created before this time")


def _choose(options: dict[str, Any]) -> DeliverySelection:
    """Return the selection for the options; of given ids also the delivered ones are selected, not only the dead ones."""
    ids = options.get("ids") or None
    return DeliverySelection(
        only_dead=not (options.get("also_delivered") or ids),
        ids=ids,
        task=options["task"],
        agent=options["agent"],
        address=options["receiver"].partition("?")[0],
        since=options["since"],
        until=options["until"],
    )


def _line(row: Delivery) -> str:
    made = timezone.localtime(row.created_at).strftime("%Y-%m-%d %H:%M:%S")
    columns = [row.webhook_id, made, row.task.agent, row.task.public_id, row.receiver.address]
    line = "  ".join([*columns, f"attempts: {row.attempts}", row.reason])
    # Some of the text is untrusted, and terminals obey control characters.
    return "".join(char if char.isprintable() else "\ufffd" for char in line)
