"""`manage.py grants add|list|remove`: the rights of callers to use and see listed agents, and to operate agents."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.access import switch_cache
from a2a_tasks.access.grants import GrantRight, grant, list_grants, withdraw
from a2a_tasks.agents import registry
from a2a_tasks.agents.security import is_listed

__all__ = ["Command"]

WHO = "key:PREFIX, jwt:'ISSUER SUB', user:ID, cert:NAME, scope:SCOPE, tenant:TENANT, or * for every admitted caller"


class Command(BaseCommand):
    """The command: it makes, lists and removes grants."""

    help = "Grant agents to callers, list grants, remove them. The rights use and see apply to listed agents (A2A_GRANTS), operate to all agents."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a subcommand for each action."""
        words = parser.add_subparsers(dest="word", required=True)
        add = words.add_parser("add", help="add a grant")
        add.add_argument("agent", help="the slug of an agent, or * for all")
        add.add_argument("grantee", help=WHO)
        add.add_argument("right", nargs="?", default=GrantRight.USE, choices=GrantRight.values)
        listing = words.add_parser("list", help="show all grants, or those that concern an agent")
        listing.add_argument("agent", nargs="?", default="")
        remove = words.add_parser(
            "remove", help="remove a grant, or all grants of a grantee for an agent"
        )
        remove.add_argument("agent")
        remove.add_argument("grantee")
        remove.add_argument("right", nargs="?", default="", choices=["", *GrantRight.values])

    def handle(self, *args: Any, word: str, **options: Any) -> None:
        """Run the subcommand."""
        getattr(self, f"_{word}")(options)

    def _add(self, options: dict[str, Any]) -> None:
        try:
            made = grant(options["agent"], options["grantee"], options["right"])
        except ValueError as fault:
            raise CommandError(str(fault)) from None
        self.stderr.write("Granted." if made else "It is granted already.")
        switch_cache.refresh()  # announced agents
        agent = registry.find_hosted(options["agent"])
        if agent is not None and not is_listed(agent):
            self.stderr.write(
                "The agent is open: every caller of the host may use it (A2A_GRANTS)."
            )

    def _list(self, options: dict[str, Any]) -> None:
        rows = list_grants()
        if options["agent"]:
            rows = rows.filter(agent__in=[options["agent"], "*"])
        for row in rows:
            self.stdout.write(f"{row.agent}  {row.right}  {row.grantee}")

    def _remove(self, options: dict[str, Any]) -> None:
        gone = withdraw(options["agent"], options["grantee"], options["right"])
        if not gone:
            raise CommandError("There is no such grant")
        self.stderr.write(f"Taken away: {gone}.")
