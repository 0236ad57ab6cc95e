"""`manage.py card_keys`: the keys that sign agent cards; make a file of them, rotate them, revoke one."""

from __future__ import annotations

import datetime as dt
import os
import time
from argparse import REMAINDER, ArgumentParser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from a2a_tasks.audit import Action
from a2a_tasks.signatures import key_file, ring
from a2a_tasks.signatures.keys import ALGORITHMS, CardKey
from a2a_tasks.store import audit

__all__ = ["Command"]

DAY = 86_400
#: Days for which a former key remains valid.
OVERLAP_DAYS = 30.0
AFTERWARDS = "Every process has to be restarted with it: make restart"


class Command(BaseCommand):
    """The command for keys of cards. No subcommand shows a private key."""

    help = (
        "The keys that sign agent cards. Without a subcommand: list them. make, rotate and revoke write a file, "
        "which A2A_CARD_KEYS names; nothing is stored in the database."
    )
    #: The command repairs a host whose checks report its keys.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a subcommand for each change of a file."""
        what = parser.add_subparsers(dest="what", metavar="make|rotate|revoke")
        make = what.add_parser("make", help="a new file with one key, readable by its owner only")
        rotate = what.add_parser(
            "rotate", help="add a new key in front; former keys sign for a while longer"
        )
        revoke = what.add_parser("revoke", help="remove a key: its signatures are no longer valid")
        for one in (make, rotate, revoke):
            one.add_argument("file", type=Path, metavar="FILE")
        for one in (make, rotate):
            one.add_argument("--algorithm", choices=sorted(ALGORITHMS.values()), default="ES256")
        rotate.add_argument(
            "--days",
            type=float,
            default=OVERLAP_DAYS,
            help="days for which former keys still sign and are published (default 30)",
        )
        # All remaining arguments, since one in 64 thumbprints begins like an option.
        revoke.add_argument("kid", metavar="KID", nargs=REMAINDER)

    def handle(self, *args: Any, what: str | None = None, **options: Any) -> None:
        """Run the subcommand, and show the keys in the file afterwards."""
        try:
            if what is None:
                if not ring.ring():
                    raise CommandError(
                        "cards are not signed: A2A_PUBLIC_URL is empty, or A2A_SIGN_CARDS is off"
                    )
                self._show(ring.ring())
                return
            keys = self._change(what, options)
            _write(options["file"], key_file.write_jwks(keys), new=what == "make")
            self._note(what, options["file"])
        except FileExistsError:
            raise CommandError(f"{options['file']} exists: rotate it instead") from None
        except OSError as fault:
            raise CommandError(f"{options['file']}: {fault.strerror}") from None
        except ValueError as flaw:
            raise CommandError(str(flaw)) from None
        self._show(keys)
        self.stdout.write(AFTERWARDS)

    def _note(self, what: str, file: Path) -> None:
        """Write the audit entry, if the database is there: keys can be changed without it."""
        try:
            audit.note(Action.CARD_KEYS_CHANGE, file.name, detail={"what": what})
        except DatabaseError as fault:
            self.stderr.write(f"This is not in the audit log: {fault}")

    @staticmethod
    def _change(what: str, options: Mapping[str, Any]) -> tuple[CardKey, ...]:
        if what == "make":
            return (CardKey.new(options["algorithm"]),)
        text = options["file"].read_text(encoding="utf-8")
        if not text.lstrip().startswith("{"):
            raise ValueError(
                "it is not a JWK Set: to rotate keys in PEM, name a new file in front of the old one"
            )
        if what == "revoke":
            if len(options["kid"]) != 1:
                raise ValueError("name one key, as `card_keys` lists it")
            return key_file.revoke(text, options["kid"][0])
        if not 0 <= options["days"] < float("inf"):
            raise ValueError("days must be finite, and not negative")
        now, new = time.time(), CardKey.new(options["algorithm"])
        until = float(int(now + options["days"] * DAY))
        return key_file.rotate(text, new, until=until, now=now)

    def _show(self, keys: Iterable[CardKey]) -> None:
        now = time.time()
        for key in keys:
            self.stdout.write(f"{key.kid} {key.algorithm} {_state(key, now)}")


def _state(key: CardKey, now: float) -> str:
    if not key.current(now):
        return "has expired"
    until = f", until {_date(key.times['exp'])}" if "exp" in key.times else ""
    if key.signs(now):
        return f"signs{until}"
    waits = key.jwk.is_private
    return f"will sign from {_date(key.times['nbf'])}{until}" if waits else f"verifies only{until}"


def _date(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _write(path: Path, text: str, *, new: bool) -> None:
    """Write the file whole or not at all, readable only by its owner. Raises FileExistsError if it has to be new."""
    if new and path.exists():
        raise FileExistsError
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
