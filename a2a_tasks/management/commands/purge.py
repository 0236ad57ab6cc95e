"""`manage.py purge`: remove at once the rows that retention would remove over time."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.conf import conf
from a2a_tasks.store.purge import Removed, RetentionLimits, purge, survey
from a2a_tasks.store.retention import days_of_tenants


class Command(BaseCommand):
    """The command: it removes old tasks, in small batches."""

    help = (
        "Remove tasks that ended long ago, and the event logs of others that have ended. Tasks that have not ended are "
        "never touched. Safe while the host works and while another purge runs; end it at any time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments, with the settings as defaults."""
        parser.add_argument(
            "--older-than",
            type=float,
            metavar="DAYS",
            default=conf.RETENTION_DAYS,
            help="remove tasks that ended so many days ago (default A2A_RETENTION_DAYS; 0 = none); tenants with days of their own keep these",
        )
        parser.add_argument(
            "--events-older-than",
            type=float,
            metavar="DAYS",
            default=conf.EVENT_RETENTION_DAYS,
            help="remove event logs of tasks that ended so many days ago (default A2A_EVENT_RETENTION_DAYS; 0 = none)",
        )
        parser.add_argument("--dry-run", action="store_true", help="only count, remove nothing")

    def handle(self, **options: Any) -> None:
        """Remove the rows, or only count them, and print the counts."""
        days = options["older_than"], options["events_older_than"]
        if not all(0 <= number < float("inf") for number in days):
            raise CommandError("Days must be finite, and not negative.")
        other = conf.AUDIT_RETENTION_DAYS, conf.USAGE_RETENTION_DAYS
        if not any([*days, *other, *days_of_tenants().values()]):
            raise CommandError(
                "Everything is kept: set A2A_RETENTION_DAYS, A2A_EVENT_RETENTION_DAYS, A2A_AUDIT_RETENTION_DAYS or "
                "A2A_USAGE_RETENTION_DAYS, or give --older-than DAYS."
            )
        limits = RetentionLimits.from_settings(*days)
        if options["dry_run"]:
            found = survey(limits)
            self.stdout.write(f"Would go: {found.tasks} tasks, {found.rows} rows")
            return
        done = self._purge(limits)
        self.stdout.write(
            f"Gone: {done.tasks} tasks, {done.contexts} contexts, {done.rows} rows in all"
        )

    def _purge(self, limits: RetentionLimits) -> Removed:
        done, is_terminal = Removed(), self.stdout.isatty()
        for removed in purge(limits):
            done += removed
            if is_terminal:
                self.stdout.write(f"\r{done.tasks} tasks, {done.rows} rows", ending="")
                self.stdout.flush()
        if is_terminal:
            self.stdout.write("\r\x1b[K", ending="")
        return done
