"""The lines for Sentry in docs/telemetry.md: an error of a run arrives, named and without secrets."""

from __future__ import annotations

import gzip
import json
import queue
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.log_context import LogContext
from a2a_tasks.telemetry.sentry import scrub
from tests import ROOT
from tests.integration.telemetry.test_json_log import CANARY, ENVIRON, fail
from tests.journeys.hosts import web

Events = queue.Queue[dict[str, Any]]


@contextmanager
def receiver() -> Iterator[tuple[str, Events]]:
    """A server that takes envelopes as Sentry does: its DSN, and the events that have come."""
    events: Events = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            lines = [json.loads(line) for line in body.splitlines()]
            for header, payload in zip(lines[1::2], lines[2::2], strict=False):
                if header["type"] == "event":
                    events.put(payload)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://public@127.0.0.1:{server.server_port}/1", events
        finally:
            server.shutdown()


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(180)
def test_the_lines_of_the_page_send_the_error_of_a_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
    block = re.search(r"## Sentry\n.*?```python\n(.*?)```", page, re.DOTALL)
    assert block is not None
    settings = f"from a2a_project.settings import *\n\n{block[1]}"
    (tmp_path / "with_sentry.py").write_text(settings, encoding="utf-8")
    own = {"DJANGO_SETTINGS_MODULE": "with_sentry", "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with (
        receiver() as (dsn, events),
        web({**ENVIRON, **own, "A2A_RUNS": "local", "SENTRY_DSN": dsn}) as site,
    ):
        task = fail(f"{site.url}/agents/talker/message:send?key={CANARY}")
        event = events.get(timeout=60)
    assert CANARY not in json.dumps(event)
    assert event["exception"]["values"][-1]["value"] == "token=[redacted]"
    crumbs = [crumb["message"] for crumb in event["breadcrumbs"]["values"]]
    assert "I was told password=[redacted]\nand more" in crumbs
    tags = {name: event["tags"][name] for name in ("task", "agent", "attempt", "request_id")}
    assert tags == {"task": task, "agent": "talker", "attempt": "1", "request_id": "request-7"}
    assert event["tags"]["run"].isdecimal()


def test_what_no_name_tells_to_be_a_secret_is_left_out() -> None:
    event = {
        "request": {"url": "http://h/", "data": CANARY, "query_string": f"key={CANARY}"},
        "logentry": {
            "message": "password=%s",
            "formatted": f"password={CANARY}",
            "params": [CANARY],
        },
        "extra": {"api_key": CANARY},
        "tags": {"release": "7"},
    }
    token = log_context.current.set(LogContext(agent="demo"))
    try:
        sent = scrub(event, {})
    finally:
        log_context.current.reset(token)
    assert sent == {
        "request": {"url": "http://h/"},
        "logentry": {"message": "password=[redacted]", "formatted": "password=[redacted]"},
        "extra": {"api_key": "[redacted]"},
        "tags": {"release": "7", "agent": "demo"},
    }


def test_what_is_nested_too_deep_is_left_out() -> None:
    nested: Any = CANARY
    for _ in range(100_000):
        nested = [nested]
    assert "[redacted]" in str(scrub({"extra": nested}, {}))
