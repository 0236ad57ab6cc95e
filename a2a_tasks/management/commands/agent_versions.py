"""`manage.py agent_versions`: the versions of agents, their announcements, and the choice of the one that serves."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.agents.declaration import UnfitManifest, read_manifest
from a2a_tasks.conf import project
from a2a_tasks.execution.announcement import announce_manifest, make_manifest
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import switches, versions

__all__ = ["Command"]

DONE = {
    True: "Done. All processes apply the change within seconds.",
    False: "Nothing has changed: this was set already.",
}


class Command(BaseCommand):
    """The command: it shows, announces, chooses, moves and removes versions."""

    help = "Show the versions of agents, announce those of an environment, and choose the version that serves."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a subcommand for each action."""
        words = parser.add_subparsers(dest="word", required=True)
        listing = words.add_parser("list", help="show all versions, with their environments")
        listing.add_argument("agent", nargs="?", default="", help="only versions of this agent")
        words.add_parser("manifest", help="write the agents of this environment as JSON")
        announce = words.add_parser("announce", help="announce the agents of a manifest")
        announce.add_argument("file", help="the manifest, or - for the standard input")
        serve = words.add_parser("serve", help="let a version serve new conversations")
        serve.add_argument("agent")
        serve.add_argument("version", nargs="?", default="", help="no version: the host chooses")
        canary = words.add_parser("canary", help="give a version a share of new conversations")
        canary.add_argument("agent")
        canary.add_argument("version")
        canary.add_argument("percent", type=float, help="from 0 to 100; 0 ends the canary")
        back = words.add_parser("rollback", help="end the canary, or return to the version before")
        back.add_argument("agent")
        move = words.add_parser("move", help="move the conversations of one version to another")
        move.add_argument("agent")
        move.add_argument("version", help='"" is the host\'s own code')
        move.add_argument("to", help="the version that gets them")
        forget = words.add_parser("forget", help="remove a version that no worker has")
        forget.add_argument("agent")
        forget.add_argument("version")

    def handle(self, *args: Any, word: str, **options: Any) -> None:
        """Run the subcommand."""
        try:
            getattr(self, f"_{word}")(options)
        except (ValueError, UnfitManifest) as fault:
            raise CommandError(str(fault)) from None
        except Overloaded as fault:
            raise CommandError(f"The database did not do it: {fault}") from fault

    def _list(self, options: dict[str, Any]) -> None:
        for one in versions.list_versions(options["agent"]):
            counts = f"workers: {one.workers}, unfinished runs: {one.unfinished}"
            where = one.environment or "this host"
            words = [one.slug, one.version, where, counts, one.standing]
            self.stdout.write("  ".join(word for word in words if word))

    def _manifest(self, options: dict[str, Any]) -> None:
        text = msgspec.json.format(msgspec.json.encode(make_manifest()), indent=2)
        self.stdout.write(text.decode())

    def _announce(self, options: dict[str, Any]) -> None:
        try:
            text = (
                sys.stdin.buffer.read()
                if options["file"] == "-"
                else Path(options["file"]).read_bytes()
            )
        except OSError as fault:
            raise CommandError(f"{options['file']}: {fault.strerror}") from None
        manifest = read_manifest(text, host=project.A2A_HOST_VERSION)
        for name in announce_manifest(manifest):
            self.stdout.write(f"{name} ({manifest.environment})")

    def _serve(self, options: dict[str, Any]) -> None:
        self.stderr.write(DONE[switches.serve(options["agent"], options["version"])])

    def _canary(self, options: dict[str, Any]) -> None:
        which = (options["agent"], options["version"], options["percent"])
        self.stderr.write(DONE[switches.set_canary(*which)])

    def _rollback(self, options: dict[str, Any]) -> None:
        if not switches.roll_back(options["agent"]):
            raise CommandError("The agent has no canary, and no version served before.")
        self.stderr.write(DONE[True])

    def _move(self, options: dict[str, Any]) -> None:
        moved = versions.move_conversations(options["agent"], options["version"], options["to"])
        self.stderr.write(f"Conversations moved: {moved}.")

    def _forget(self, options: dict[str, Any]) -> None:
        if not versions.forget(options["agent"], options["version"]):
            raise CommandError(
                "The agent has no such version, or it is that of the host's own code."
            )
        self.stderr.write("Removed.")
