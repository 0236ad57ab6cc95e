"""A client that opens a stream and does not read costs the web process a few megabytes, however much there is to read."""

from __future__ import annotations

import datetime
import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db.models import F

from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.models import Run
from lab.server.client import PATIENCE
from tests.journeys.hosts import Web, web
from tests.support.store.world import Pen, held

pytestmark = pytest.mark.django_db(transaction=True)
MB = 1024 * 1024
VERSION = "A2A-Version: 1.0"
STREAM = "/agents/demo/tasks/task-1:subscribe"
#: 200 MB are streamed; the process may grow by the tail of the feed and by what is on its way to the two clients.
PIECES, PIECE, MAX_COUNT = 200, MB, 40 * MB


def run_of_a_task() -> Pen:
    """A run of a task of the anonymous caller, held for longer than the test takes."""
    pen = Pen(held(scope=ANONYMOUS.scope("demo")))
    hour = datetime.timedelta(hours=1)
    Run.objects.filter(pk=pen.run.key).update(lease_until=F("lease_until") + hour)
    return pen


def peak(site: Web, *, anew: bool = False) -> int:
    """The most memory that the process had at once, in bytes; measured `anew` from here on."""
    process = Path(f"/proc/{site.process.process.pid}")
    if anew:
        (process / "clear_refs").write_text("5")
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def follow(address: tuple[str, int], after: int, began: threading.Event) -> int:
    """Follow the task to its end, as a client that reads; returns how many bytes came."""
    client, came = http.client.HTTPConnection(*address, timeout=PATIENCE), 0
    with closing(client):
        headers = {"A2A-Version": "1.0", **({"Last-Event-ID": str(after)} if after else {})}
        client.request("GET", STREAM, headers=headers)
        response = client.getresponse()
        while piece := response.read1(MB):
            came += len(piece)
            began.set()
    return came


def test_an_unread_stream_of_200_mb_costs_a_few() -> None:
    with web() as site, ThreadPoolExecutor(1) as beside:
        address = (urlsplit(site.url).hostname or "", urlsplit(site.url).port or 0)
        pen = run_of_a_task()
        with socket.create_connection(address, timeout=PATIENCE) as unread:
            unread.sendall(
                f"GET {STREAM} HTTP/1.1\r\nHost: localhost\r\n{VERSION}\r\n\r\n".encode()
            )
            assert unread.recv(12) == b"HTTP/1.1 200"  # nothing is read from here on
            began = threading.Event()
            reading = beside.submit(follow, address, 0, began)
            assert began.wait(PATIENCE)
            before = peak(site, anew=True)
            pen.begin("a", "x" * PIECE)
            for _ in range(PIECES - 1):
                pen.add("a", "x" * PIECE)
            pen.end()
            assert reading.result(60) > PIECES * PIECE
            assert peak(site) - before < MAX_COUNT
            assert (
                follow(address, PIECES, began) > PIECE
            )  # goes on near the end, and is not told the whole task
            assert peak(site) - before < MAX_COUNT
