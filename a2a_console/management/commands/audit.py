"""`manage.py audit head|verify|export|seal`: the audit log."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import fields
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_console.audit.proof import Broken, Proof, head, verify
from a2a_console.audit.reading import EntryFilter, export
from a2a_console.management.moments import moment
from a2a_console.management.progress import Progress
from a2a_tasks.audit import Action
from a2a_tasks.protocol.jsontext import on_one_line, write
from a2a_tasks.store.audit_seals import seal_all

__all__ = ["Command"]


class Command(BaseCommand):
    """Subcommands that show, verify, export and seal the audit log."""

    help = (
        "The audit log. head: number and hash of the newest link, to be stored on another system. verify: check that "
        "no sealed entry was changed, removed or inserted. export: JSON lines."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a parser for each subcommand."""
        words = parser.add_subparsers(dest="word", required=True)
        words.add_parser("head", help="show number and hash of the newest entry")
        check = words.add_parser("verify", help="verify the whole log; exit code 1 if it is broken")
        check.add_argument(
            "--since-head",
            default="",
            metavar="HASH",
            help="also check that this head is still in the log",
        )
        out = words.add_parser("export", help="write entries as JSON lines, oldest first")
        for name in ("tenant", "actor", "object", "agent"):
            out.add_argument(f"--{name}", default="")
        out.add_argument(
            "--action", default="", help=f"`task` for all, or such as {Action.TASK_SEND.value}"
        )
        out.add_argument("--since", type=moment, metavar="TIME")
        out.add_argument("--until", type=moment, metavar="TIME")
        words.add_parser("seal", help="seal all unsealed entries now")

    def handle(self, *, word: str, **options: Any) -> None:
        """Run the subcommand."""
        getattr(self, f"_{word}")(options)

    def _head(self, _: dict[str, Any]) -> None:
        number, link = head()
        self.stdout.write(f"{number} {link}")

    def _verify(self, options: dict[str, Any]) -> None:
        try:
            proof = self._run_verification(options["since_head"])
        except Broken as found:
            raise CommandError(f"BROKEN: {found}") from None
        self.stdout.write(f"Whole: {proof.verified} entries, up to {proof.last} {proof.hash}")
        if erased := proof.erased.total():
            self.stdout.write(f"Names taken out by erasures: {erased}")
        if proof.unsealed:
            self.stdout.write(f"Not sealed yet: {proof.unsealed}")
        if not proof.guarded:
            self.stderr.write("The database triggers that protect audit rows are missing.")

    def _run_verification(self, since: str) -> Proof:
        steps = verify(since)
        proof = next(steps)
        with Progress(self.stderr, proof.total, "entries") as shown:
            for proof in steps:
                shown(proof.verified)
        return proof

    def _export(self, options: dict[str, Any]) -> None:
        wanted = EntryFilter(**{field.name: options[field.name] for field in fields(EntryFilter)})
        with Progress(self.stderr, wanted.entries().count(), "entries") as shown:
            for done, row in enumerate(export(wanted), 1):
                self.stdout.write(on_one_line(write(row)).decode())
                shown(done)

    def _seal(self, _: dict[str, Any]) -> None:
        self.stdout.write(f"Sealed: {seal_all(everywhere=True)}")
