"""`manage.py grants add|list|remove`: who may use, see and operate agents that are listed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.access.grants import Right, grant, granted, withdraw
from a2a_tasks.agents import registry
from a2a_tasks.agents.security import listed

__all__ = ["Command"]

WHO = "key:PREFIX, jwt:'ISSUER SUB', user:ID, cert:NAME, scope:SCOPE, tenant:TENANT, or * for everybody whom the host lets in"


class Command(BaseCommand):
    """Makes, shows and ends grants."""

    help = "Grant agents to callers, list grants, take them away. They count for agents that are listed (A2A_GRANTS)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One subcommand for each thing to do."""
        words = parser.add_subparsers(dest="word", required=True)
        add = words.add_parser("add", help="grant something")
        add.add_argument("agent", help="its slug, or * for all")
        add.add_argument("grantee", help=WHO)
        add.add_argument("right", nargs="?", default=Right.USE, choices=Right.values)
        shown = words.add_parser("list", help="show all grants, or those that concern an agent")
        shown.add_argument("agent", nargs="?", default="")
        remove = words.add_parser("remove", help="take a grant away, or all this one has there")
        remove.add_argument("agent")
        remove.add_argument("grantee")
        remove.add_argument("right", nargs="?", default="", choices=["", *Right.values])

    def handle(self, *args: Any, word: str, **options: Any) -> None:
        """Do it."""
        getattr(self, f"_{word}")(options)

    def _add(self, options: dict[str, Any]) -> None:
        try:
            made = grant(options["agent"], options["grantee"], options["right"])
        except ValueError as fault:
            raise CommandError(str(fault)) from None
        self.stderr.write("Granted." if made else "It was granted before.")
        agent = registry.hosted(options["agent"])
        if agent is not None and not listed(agent):
            self.stderr.write("The agent is open: whoever is let in may use it (A2A_GRANTS).")

    def _list(self, options: dict[str, Any]) -> None:
        rows = granted()
        if options["agent"]:
            rows = rows.filter(agent__in=[options["agent"], "*"])
        for row in rows:
            self.stdout.write(f"{row.agent}  {row.right}  {row.grantee}")

    def _remove(self, options: dict[str, Any]) -> None:
        gone = withdraw(options["agent"], options["grantee"], options["right"])
        if not gone:
            raise CommandError("There is no such grant")
        self.stderr.write(f"Taken away: {gone}.")
