"""`manage.py privacy export|erase|hold|release|holds|retention`: data of principals, legal holds and retention."""

from __future__ import annotations

import os
import zipfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError

from a2a_console.management.progress import Progress
from a2a_console.privacy.erasure import COUNTED, Erasure, ErasurePlan, erase, survey
from a2a_console.privacy.export import documents, note_export
from a2a_console.privacy.principal import Principal
from a2a_tasks.protocol.jsontext import on_one_line, write
from a2a_tasks.store import legal_holds, retention
from a2a_tasks.store.legal_holds import HoldKind

__all__ = ["Command"]


class Command(BaseCommand):
    """Subcommands for a principal's data, legal holds and retention."""

    help = (
        "Data of principals, legal holds and retention. A principal owns tasks: key:<prefix>, jwt:<issuer> <subject>, "
        "user:<number> or cert:<name>. Data under a legal hold is not erased, neither by this command nor by retention. "
        "It can run beside the host, and be interrupted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a parser for each subcommand."""
        words = parser.add_subparsers(dest="word", required=True)
        out = words.add_parser("export", help="write all data of a principal to a zip file")
        away = words.add_parser("erase", help="list the data of a principal; with --yes, erase it")
        for one in (out, away):
            one.add_argument("principal")
            one.add_argument("--tenant", help="only data of this tenant and those below it")
        out.add_argument("file", type=Path, metavar="FILE")
        away.add_argument("--yes", action="store_true", help="erase the data")
        hold = words.add_parser("hold", help="put a tenant, principal, context or task on hold")
        hold.add_argument("kind", choices=[kind.value for kind in HoldKind])
        hold.add_argument("name", help="the id; of a tenant the name, which may be empty")
        hold.add_argument("--reason", required=True)
        words.add_parser("release", help="release a hold").add_argument("hold", type=int)
        words.add_parser("holds", help="list the holds in force")
        keep = words.add_parser("retention", help="list or set tenants' days of retention")
        keep.add_argument("tenant", nargs="?")
        keep.add_argument("days", nargs="?", help="a number (0 = for ever), or `default`")

    def handle(self, *, word: str, **options: Any) -> None:
        """Run the subcommand."""
        try:
            getattr(self, f"_{word}")(options)
        except ValueError as fault:
            raise CommandError(str(fault)) from None

    # -- export

    def _export(self, options: dict[str, Any]) -> None:
        principal = Principal(options["principal"], options["tenant"])
        counts = _write(options["file"], principal, Progress(self.stderr, 0, "documents"))
        note_export(principal, counts)
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        self.stdout.write(f"{options['file']}: {summary or 'there is nothing'}")

    # -- erase

    def _erase(self, options: dict[str, Any]) -> None:
        principal = Principal(options["principal"], options["tenant"])
        found = survey(principal)
        if not options["yes"]:
            self.stdout.write(_would(found))
            return
        with Progress(self.stderr, found.tasks, "tasks") as shown:
            for done in erase(principal):
                shown(done.removed.tasks)
        self.stdout.write(_did(done))
        if done.left or found.itself:
            raise CommandError(f"Not everything is gone: {done.left} tasks are held. See `holds`.")

    # -- holds and retention

    def _hold(self, options: dict[str, Any]) -> None:
        row = legal_holds.lay(HoldKind(options["kind"]), options["name"], options["reason"])
        self.stdout.write(f"Held: {row}. It is released by: privacy release {row.pk}")

    def _release(self, options: dict[str, Any]) -> None:
        if not legal_holds.release(options["hold"]):
            raise CommandError("There is no such hold in force")
        self.stdout.write("Released.")

    def _holds(self, _: dict[str, Any]) -> None:
        for row in legal_holds.in_force():
            since = row.created_at.strftime("%Y-%m-%d")
            self.stdout.write(f"{row.pk}  {row}  since {since} by {row.by}: {row.reason}")

    def _retention(self, options: dict[str, Any]) -> None:
        if (options["tenant"] is None) != (options["days"] is None):
            raise CommandError("Say both: a tenant, and its days or `default`.")
        if options["days"] is not None:
            days = None if options["days"] == "default" else float(options["days"])
            retention.set_days(options["tenant"], days)
        for tenant, own in retention.days_of_tenants().items():
            self.stdout.write(f"{tenant or '(none)'}  {f'{own:g} days' if own else 'for ever'}")


def _write(file: Path, principal: Principal, shown: Progress) -> dict[str, int]:
    """Write the file atomically, readable by its owner only. Return the number of documents of each kind."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as raw, shown:
            counts = dict(_write_zip(raw, principal, shown))
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return counts


def _write_zip(raw: IO[bytes], principal: Principal, shown: Progress) -> Iterator[tuple[str, int]]:
    """Write a file of JSON lines for each kind. Yield the kinds with their numbers of documents."""
    done = 0
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, found in documents(principal):
            before = done
            with archive.open(f"{name}.jsonl", "w", force_zip64=True) as lines:
                for document in found:
                    lines.write(on_one_line(write(document)) + b"\n")
                    done += 1
                    shown(done)
            yield name, done - before


def _would(found: ErasurePlan) -> str:
    lines = [
        f"Would go: {_at_least(found.tasks - found.held)} tasks ({_at_least(found.running)} not ended, which are "
        f"canceled first), {_at_least(found.contexts)} contexts, {found.keys} API keys, with everything of them.",
        f"In {_at_least(found.entries)} entries of the audit log the name would be replaced.",
    ]
    if found.held or found.itself:
        lines.append(f"Held, and would stay: {found.held} tasks; then the name stays, too.")
    return "\n".join([*lines, "Nothing was done: say --yes."])


def _at_least(count: int) -> str:
    return f"at least {count:,}" if count >= COUNTED else f"{count}"


def _did(done: Erasure) -> str:
    removed = done.removed
    return (
        f"Gone: {removed.tasks} tasks, {removed.contexts} contexts, {removed.rows} rows in all, {done.keys} API keys. "
        f"Canceled first: {done.cancelled}. Entries of the audit log in which it is {done.name} now: {done.entries}."
    )
