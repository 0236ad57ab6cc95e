"""A fault lab with a farm beside it: the host's processes, pushers among them, and receivers that write down what comes."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from a2a_push.keyring import Audience, KeyRing
from lab.farm.admin_pages import admin_pages
from lab.farm.checker import Terms, check
from lab.farm.rows import Rows, read_rows, texts
from lab.farm.server import PORTS, READY, Place
from lab.faultlab.checker import Violation
from lab.faultlab.history import Record, read
from lab.faultlab.lab import DEFAULT, QUICK, Lab, Plan
from lab.faultlab.processes import Process
from tests import ROOT
from tests.support.ports import free_ports

__all__ = ["FarmLab", "plan"]

#: What the host signs with here.
MASTER = "whsec_" + "bWFzdGVyLW9mLXRoZS1mYXJtLW1hc3Rlci1vZi1mYXI="
#: A line of a pusher's log, in local time.
UNRECORDED = re.compile(r"^\[([-0-9]+ [:0-9]+,[0-9]+): .* is not recorded", re.MULTILINE)
APPS = "lab.faultlab.agents_app,lab.farm.host_app"


def plan(*, scale: float, limit: float, quick: bool = True, **more: Any) -> Plan:
    """A lab whose schedule is so much shorter, and whose deliveries may take so many seconds.

    With the leases of production unless it is to be quick: then a process that is kept waiting half a second within a
    transaction loses its connection.
    """
    settings = {
        **(QUICK if quick else DEFAULT),
        "A2A_WEBHOOK_TIME_SCALE": f"{scale:.10f}",
        "A2A_WEBHOOK_SECONDS": str(limit),
        "A2A_WEBHOOK_CONNECT_SECONDS": str(limit),
        "FARM_RESOLVER_SECONDS": str(limit * 2),
    }
    wanted = {"webs": 1, "workers": 1, "pushers": 1, **more}
    return Plan(environ=settings, **wanted)


class FarmLab(Lab):
    """One host and one farm."""

    def __init__(self, plan_: Plan | None = None) -> None:
        super().__init__(plan_ or plan(scale=0.0005, limit=3.0))
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self.place = self.directory / "farm"
        self._from: dict[str, int] = {}
        self.farm: Process | None = None
        #: Makes the operator who looks for secrets on the admin's pages, too; None = nobody does.
        self.operator: subprocess.Popen[bytes] | None = None

    @property
    def terms(self) -> Terms:
        """What is promised here."""
        ring = KeyRing.of([MASTER])
        origin = f"http://receiver.farm.test:{self.ports['http']}"
        return Terms(
            scale=float(self.plan.environ["A2A_WEBHOOK_TIME_SCALE"]),
            limit=float(self.plan.environ["A2A_WEBHOOK_SECONDS"]),
            keys=tuple(key.text for key in ring.verifiers(Audience("", origin, "c"))),
        )

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the host's processes, and of the farm."""
        own = {
            "A2A_APPS": APPS,
            "A2A_WEBHOOK_SECRETS": MASTER,
            "A2A_WEBHOOK_ALLOW_NETWORKS": ".farm.test",
            "A2A_WEBHOOK_ALLOW_HTTP": "1",
            "A2A_WEBHOOK_CA_BUNDLE": str(self.place / "authority.pem"),
            "FARM_LOOKUPS": str(self.place / "lookups.jsonl"),
        }
        return {**super().environ, **own}

    def _start_processes(self, ports: Sequence[int]) -> None:
        self.place.mkdir()
        self._open_the_farm()
        super()._start_processes(ports)

    def _open_the_farm(self) -> None:
        """First: what vouches for its receivers must be there when the host starts."""
        where = self.place / "place.json"
        place = Place(
            directory=str(self.place),
            ports=self.ports,
            limit=self.terms.limit,
            webs=list(self.urls.values()),
        )
        where.write_bytes(msgspec.json.encode(place))
        self.farm = Process(
            name="farm",
            arguments=["-m", "lab.farm", "serve", str(where)],
            environ=self.environ,
            directory=ROOT,
            logs=self.logs,
            ready_when=READY,
            tell=self.tell,
            supervised=False,
        )
        self._stack.callback(self.farm.stop_at_once)
        self.farm.start()
        self.farm.wait_ready()

    # --- telling and checking -------------------------------------------------------------

    def _begin(self) -> None:
        super()._begin()
        self._from = {path.name: path.stat().st_size for path in self._ledgers()}

    def _ledgers(self) -> list[Path]:
        return [path for path in self.place.glob("*.jsonl") if path.name != "part.jsonl"]

    def records(self) -> list[Record]:
        """What clients, faults and the farm told of this episode."""
        found = self.history()
        for path in self._ledgers():
            with path.open("rb") as ledger:
                ledger.seek(self._from.get(path.name, 0))
                part = self.place / "part.jsonl"
                part.write_bytes(ledger.read())
            found += read(part)
        found += unrecorded(self.logs)
        return sorted(found, key=lambda record: record.t)

    def rows(self) -> Rows:
        """The rows of this episode."""
        all_ = read_rows(self.postgres.url(self.database))
        deliveries = tuple(row for row in all_.deliveries if row.task > self._first_task)
        known = {row.row for row in deliveries}
        return Rows(
            tasks=tuple(row for row in all_.tasks if row.task > self._first_task),
            events=tuple(row for row in all_.events if row.task > self._first_task),
            configs=tuple(row for row in all_.configs if row.task > self._first_task),
            deliveries=deliveries,
            attempts=tuple(row for row in all_.attempts if row.delivery in known),
        )

    def _unsettled(self, seconds: float) -> list[Violation]:
        """Wait until every task has ended and every webhook was told all; what is left after that long is lost."""
        deadline = time.monotonic() + seconds
        query = (
            "select (select count(*) from a2a_push_pushconfig where active),"
            " (select count(*) from a2a_push_delivery where status = 'pending'),"
            " (select count(*) from a2a_tasks_run where status in ('queued', 'running'))"
        )
        while any((left := self.postgres.execute(query, self.database))[0]):
            if time.monotonic() > deadline:
                return [Violation("W2", "webhooks, deliveries, runs left: " + str(left[0]), [])]
            time.sleep(0.1)
        return []

    def _verdict(self) -> tuple[list[Violation], list[float], int]:
        records, rows = self.records(), self.rows()
        told = [
            Record(time.time(), "secret-found", {"where": where}) for where in self.secrets(records)
        ]
        found = check([*records, *told], rows, self.terms)
        return [*found, *self._deaths(records)], [], len(rows.tasks)

    def secrets(self, records: Sequence[Record]) -> list[str]:
        """Where secrets of receivers can be read: a log, a table, a page of the admin."""
        words = [
            secret(str(record["token"]))
            for record in records
            if record.what in {"registered", "rotated"}
        ]
        found = texts(self.postgres.url(self.database), words)
        for log in self.logs.glob("*.log"):
            text = log.read_text(errors="replace")
            found += [f"{log.name}: {word}" for word in words if word in text]
        if self.operator is not None:
            self.operator.wait(60)
            pages = admin_pages(next(iter(self.urls.values())))
            found += [f"{path}: {word}" for path, text in pages for word in words if word in text]
        return found

    def _deaths(self, records: Sequence[Record]) -> list[Violation]:
        """Processes that died though nobody hurt them."""
        hurt = {record["pid"] for record in records if record.what == "fault"}
        died = [
            record
            for record in records
            if record.what == "process" and record["event"] == "died" and record["pid"] not in hurt
        ]
        return [Violation("W15", f"{record['name']} died by itself", [record]) for record in died]

    def keep(self, into: Path) -> None:
        """Copy all there is about the last episode, for whoever looks into a failure."""
        super().keep(into)
        shutil.copytree(self.place, into / "farm", dirs_exist_ok=True)


def unrecorded(logs: Path) -> list[Record]:
    """What pushers say they could not write down: the database was away, or their lease had ended."""
    said = [
        match
        for log in logs.glob("pusher*.log")
        for match in UNRECORDED.finditer(log.read_text(errors="replace"))
    ]
    moments = [
        datetime.datetime.fromisoformat(match[1].replace(",", ".")).timestamp() for match in said
    ]
    return [Record(moment, "unrecorded", {}) for moment in moments]


def secret(token: str) -> str:
    """What must be nowhere: of a key, its own part."""
    return token.partition("whsec_")[2] or token
