"""Parts of the campaign that ask a running host over sockets, gRPC's too: many hostile requests, and how long foreign and missing take."""

from __future__ import annotations

import json
import random
import re
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import Run, RunStatus
from lab.hostile import page
from lab.hostile.bending import hostile
from lab.hostile.golden import Request
from lab.hostile.judge import is_error, leaks, wrong
from lab.hostile.rpc_bending import Call, hostile_call
from lab.hostile.rpc_judge import leaks_of, wrong_call
from lab.hostile.rpc_judge import refused as was_refused
from lab.hostile.rpc_wire import called, channel_to
from lab.hostile.wire import BLOBS, IMPATIENCE, Cut, Wire, head
from lab.matrix.asks import RPC, AnyWire, Named, ask, wires
from tests.journeys import hosts
from tests.support.execution.waiting import eventually
from tests.support.grpc_server.frames import FRAMES, reply
from tests.support.processes import Child

__all__ = ["requests", "times"]

#: What a request may change. Deliveries of webhooks go on by themselves; tallies are made by reading.
COUNTED = {
    "a2a_tasks_task": "count(*), max(id), sum(last_event), count(distinct state), max(status_at)",
    "a2a_tasks_context": "count(*), max(id), max(updated_at)",
    "a2a_tasks_message": "count(*), sum(length(body))",
    "a2a_tasks_event": "count(*), sum(length(body))",
    "a2a_tasks_artifact": "count(*), sum(length(body))",
    "a2a_tasks_run": "count(*), max(id), max(ended_at)",
    "a2a_tasks_idempotency": "count(*), max(id)",
    "a2a_push_pushconfig": "count(*), max(id), sum(length(url)), sum(length(secret)), sum(length(schemes))",
}
#: Requests after which a process has grown to its size.
WARM = 1000
#: MB it may grow by from there.
MAX_GROWTH = 48
EVERY = 250
#: Of so many requests one is a call over gRPC.
CALL_EVERY = 4
LIST = "/lf.a2a.v1.A2AService/ListTasks"
#: The wires whose time is taken.
TIMED = {"v10", "v10-http", "v03", "v03-http", "v01", "dr", "v10-grpc", "v03-grpc", "dr-grpc"}
#: How often a comparison goes on that a restless machine has made doubtful.
MAX_BATCHES = 5
#: Bytes of a line that every server reads.
MAX_LINE_LENGTH = 16_000
Json = dict[str, Any]


@contextmanager
def running(**environ: str) -> Iterator[hosts.Host]:
    """A host of this run's backend, on a database of its own."""
    made = setup_databases(verbosity=0, interactive=False)
    try:
        with hosts.host(environ, grpc=True) as host:
            yield host
    finally:
        connection.close()
        teardown_databases(made, verbosity=0)


def marks() -> list[Any]:
    """Counts and sums of every table that requests write."""
    found = []
    with connection.cursor() as cursor:
        for table, columns in COUNTED.items():
            cursor.execute(f"select {columns} from {table}")
            found.append(cursor.fetchone())
    return found


def idle() -> bool:
    """Is no run under way or waiting?"""
    return not Run.objects.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING]).exists()


def megabytes(processes: Sequence[Child]) -> float:
    """Memory they hold."""
    found = []
    for process in processes:
        status = Path(f"/proc/{process.process.pid}/status").read_text(encoding="utf-8")
        found += re.findall(r"VmRSS:\s+(\d+) kB", status)
    return sum(map(int, found)) / 1024


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def _made(wire: Wire) -> dict[str, str]:
    """An ended task, for requests that name one."""
    said = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "echo hi"}]}
    headers = ((b"content-type", b"application/json"),)
    body = json.dumps({"message": said}).encode()
    task = json.loads(wire.ask(Request(b"POST", b"/agents/demo/message:send", headers, body)).body)
    return {"task": task["task"]["id"], "context": task["task"]["contextId"]}


def requests(first: int, count: int) -> Json:
    """Send them one after another, and judge each answer, what it did to the tables, and the process at the end."""
    begun = time.monotonic()
    with (
        running(A2A_WEBHOOK_ALLOW_PRIVATE="1", LOG_LEVEL="ERROR") as host,
        Wire(_port(host.here)) as wire,
        channel_to(host.grpc) as channel,
    ):
        processes = [host.webs[0].process, *([host.grpc_process] if host.grpc_process else [])]
        trial = _Trial(wire, channel)
        sizes = []
        for number in range(first, first + count):
            trial.one(number)
            if number - first + 1 in {min(WARM, count // 2), count}:
                sizes.append(megabytes(processes))
            if number % EVERY == 0:
                print(
                    f"\r{number - first} of {count}, {len(trial.wrong)} wrong", end="", flush=True
                )
        trial.blobs(_port(host.here))
        trial.frames(host.grpc)
        trial.healthy()
        if sizes[-1] - sizes[0] > MAX_GROWTH:
            trial.wrong.append(f"the processes grew from {sizes[0]:.0f} to {sizes[-1]:.0f} MB")
        log = "".join(process.log for process in processes)
        trial.wrong += [f"log: {line}"[:300] for line in log.splitlines() if " ERROR " in line]
    print()
    return {
        "requests": count,
        "calls": trial.calls,
        "framing": len(BLOBS) + len(FRAMES),
        "accepted": trial.accepted,
        "refused": trial.refused,
        "cut": trial.cut,
        "statuses": dict(sorted(trial.statuses.items())),
        "bends": dict(trial.bends.most_common()),
        "memory": [round(size) for size in sizes],
        "wrong": trial.wrong[:100],
        "seconds": round(time.monotonic() - begun),
    }


class _Trial:
    """What was asked and answered so far."""

    def __init__(self, wire: Wire, channel: grpc.Channel) -> None:
        self._wire, self._channel = wire, channel
        self._there = _made(wire)
        eventually(idle)
        self._before = marks()
        self.accepted = self.refused = self.cut = self.calls = 0
        self.statuses: Counter[str] = Counter()
        self.bends: Counter[str] = Counter()
        self.wrong: list[str] = []

    def _known(self, name: str, chance: random.Random) -> str:
        strange = str(uuid.UUID(int=chance.getrandbits(128)))
        return self._there.get(name, strange) if chance.random() < 0.7 else strange

    def one(self, number: int) -> None:
        """Ask, and judge."""
        if number % CALL_EVERY == 0:
            self._call(number)
        else:
            self._request(number)

    def _request(self, number: int) -> None:
        request = hostile(number, self._known)
        try:
            answer = self._wire.ask(request)
        except Cut as cut:
            if len(head(request)) > MAX_LINE_LENGTH:  # some servers only hang up then
                self.cut += 1
                return
            self.wrong.append(f"{number}: no answer ({cut}): {request}"[:1500])
            return
        problems = list(wrong(request, answer))
        self._settle(number, problems, f"{request} -> {answer}", refused=is_error(answer))
        self._count(request.bent, str(answer.status), refused=is_error(answer))

    def _call(self, number: int) -> None:
        call = hostile_call(number, self._known)
        said = called(self._channel, call)
        self.calls += 1
        problems = list(wrong_call(call, said))
        self._settle(number, problems, f"{call} -> {said}", refused=was_refused(said))
        self._count(call.bent, said.code, refused=was_refused(said))

    def _settle(self, number: int, problems: list[str], shown: str, *, refused: bool) -> None:
        eventually(idle)
        before, self._before = self._before, marks()
        if refused and self._before != before:
            problems.append("something was changed")
        self.wrong += [f"{number}: {problem}: {shown}"[:1500] for problem in problems]

    def _count(self, bent: Sequence[str], status: str, *, refused: bool) -> None:
        self.statuses[status] += 1
        self.bends.update(set(bent))
        self.refused += refused
        self.accepted += not refused

    def blobs(self, port: int) -> None:
        """What is no request: refused, or the connection ends."""
        for number, blob in enumerate(BLOBS):
            try:
                with Wire(port, IMPATIENCE) as wire:
                    answer = wire.send(blob)
            except Cut:
                continue
            said = f"framing {number}: {blob[:80]!r} -> {answer}"[:500]
            if answer.status >= 500 and answer.status not in {501, 505}:
                self.wrong.append(f"a fault: {said}")
            if leaks(answer):
                self.wrong.append(f"a leak: {said}")

    def frames(self, port: int) -> None:
        """What is no call: nothing is told, and the server stays."""
        for number, data in enumerate(FRAMES):
            if words := leaks_of(reply(port, data)):
                self.wrong.append(f"a leak: frames {number}: {data[:80]!r} -> {words}")

    def healthy(self) -> None:
        """Does it work as on the first day?"""
        if self._wire.ask(Request(b"GET", b"/readyz")).status != 200 or not _made(self._wire):
            self.wrong.append("the host is not healthy")
        if was_refused(said := called(self._channel, Call(LIST, (), (b"",)))):
            self.wrong.append(f"gRPC is not healthy: {said}")


def times(rounds: int) -> Json:
    """Medians of what is another's and of what is not there, asked in turns, in milliseconds."""
    begun = time.monotonic()
    with (
        running(A2A_ANONYMOUS="0", LOG_LEVEL="ERROR") as host,
        Wire(_port(host.here)) as wire,
        channel_to(host.grpc) as channel,
    ):
        alice, mallory = (issue(name, tenant="acme").key for name in ("alice", "mallory"))
        found = {}
        for one in wires():
            if one.name in TIMED:
                prize = _prize(wire, alice)
                for operation in ("get", "cancel", "subscribe", "configs", "read", "send"):
                    asked = ask(one, operation, replace(prize, config="c"))
                    if asked is not None and not (operation == "send" and one.grammar.names_tasks):
                        word = f"{one.name} {operation}"
                        asking = Asking(wire, channel, one, operation, mallory)
                        found[word] = _compared(asking, prize, rounds)
    return {"rounds": rounds, "medians": found, "seconds": round(time.monotonic() - begun)}


def _prize(wire: Wire, key: str) -> Named:
    """A task of Alice's that waits for her."""
    said = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "ask what"}]}
    headers = ((b"content-type", b"application/json"), (b"x-api-key", key.encode()))
    body = json.dumps({"message": said}).encode()
    answer = wire.ask(Request(b"POST", b"/agents/demo/message:send", headers, body))
    task = json.loads(answer.body)["task"]
    return Named(task=task["id"], config="c")


@dataclass(frozen=True)
class Asking:
    """An operation over a wire, by somebody."""

    wire: Wire
    channel: grpc.Channel
    by: AnyWire
    operation: str
    key: str

    def took(self, named: Named) -> float:
        """The seconds until it was refused."""
        asked = ask(self.by, self.operation, named)
        assert asked is not None
        headers = {**asked.headers, "x-api-key": self.key}
        if asked.verb == RPC:
            call = Call(asked.path, (("a2a-agent", "demo"), *headers.items()), (asked.body,))
            begun = time.perf_counter()
            said = called(self.channel, call)
            taken = time.perf_counter() - begun
            assert was_refused(said), said
            return taken
        request = Request(
            asked.verb.encode(),
            f"/agents/demo/{asked.path}".encode(),
            tuple((name.encode(), text.encode()) for name, text in headers.items()),
            asked.body,
        )
        begun = time.perf_counter()
        answer = self.wire.ask(request)
        taken = time.perf_counter() - begun
        assert is_error(answer), answer
        return taken


def _compared(asking: Asking, prize: Named, rounds: int) -> Mapping[str, float]:
    """The medians, and that of the difference of each two that were asked one after the other."""
    taken: dict[str, list[float]] = {"foreign": [], "missing": []}
    for asked_so_far in range(rounds * MAX_BATCHES):
        if asked_so_far % rounds == 0 and asked_so_far and abs(_difference(taken)) < page.MAX_MS:
            break
        absent = replace(prize, task=str(uuid.uuid4()))
        for kind, named in random.sample([("foreign", prize), ("missing", absent)], 2):
            taken[kind].append(asking.took(named))
    medians = {kind: statistics.median(_steady(found)) * 1000 for kind, found in taken.items()}
    return {**medians, "difference": _difference(taken), "pairs": len(taken["foreign"])}


def _difference(taken: Mapping[str, Sequence[float]]) -> float:
    """The median of the differences, in milliseconds."""
    pairs = zip(_steady(taken["foreign"]), _steady(taken["missing"]), strict=True)
    return statistics.median(foreign - missing for foreign, missing in pairs) * 1000


def _steady(found: Sequence[float]) -> Sequence[float]:
    """Without the first few, which warm caches."""
    return found[len(found) // 10 :]
