"""A real host is asked to end: its streams and blocking sends are answered so that their clients can go on."""

from __future__ import annotations

import http.client
import json
import signal
import uuid
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_tasks.models import Task
from lab.server.client import PATIENCE
from tests.journeys.hosts import Web, web
from tests.support.execution.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.backend("sqlite"), pytest.mark.django_db(transaction=True)]
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def host() -> Iterator[Callable[..., Web]]:
    """Start an embedded host with a drain of so many seconds."""
    with ExitStack() as stack:
        yield lambda drain="10": stack.enter_context(web({"A2A_DRAIN_SECONDS": drain}))


def connection(site: Web) -> http.client.HTTPConnection:
    """A connection of its own, kept alive."""
    return http.client.HTTPConnection(site.url.removeprefix("http://"), timeout=PATIENCE)


def ask(
    client: http.client.HTTPConnection, route: str, text: str, **more: Any
) -> http.client.HTTPResponse:
    """Send a message to the demo agent."""
    asked = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]}
    body = json.dumps({"message": asked, **more})
    client.request("POST", f"/agents/demo/message:{route}", body, JSON)
    return client.getresponse()


def terminate(site: Web) -> None:
    site.process.process.send_signal(signal.SIGTERM)


def test_a_stream_ends_as_a_whole_one_and_says_that_the_task_goes_on(
    host: Callable[..., Web],
) -> None:
    site = host("4")  # it must still be there for the second request
    with closing(connection(site)) as client:
        stream = ask(client, "stream", "sleep 60")
        first = stream.readline()
        terminate(site)
        rest = stream.read().decode()  # IncompleteRead, were it cut
        client.request(
            "GET", "/readyz"
        )  # on the same connection, of which it was not told that it closes
        answer = client.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (503, "close")
    assert first.startswith(b"id: ")
    assert rest.endswith(
        ": this process stops and the task goes on, subscribe again\nretry: 1000\n\n"
    )
    assert "COMPLETED" not in rest
    assert site.process.process.wait(PATIENCE) == 0


def test_a_blocking_send_is_answered_with_the_task_as_it_stands(host: Callable[..., Web]) -> None:
    site = host("2")
    with closing(connection(site)) as client, closing(connection(site)) as watcher:
        held = ask(watcher, "stream", "sleep 60")
        client.request(*_blocking())
        held.readline()
        eventually(lambda: Task.objects.count() == 2)  # it has come there
        terminate(site)
        answer = client.getresponse()
        task = json.loads(answer.read())["task"]
    assert answer.status == 200
    assert answer.headers["Connection"] == "close"
    assert task["status"]["state"] in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
    assert site.process.process.wait(PATIENCE) == 0


def _blocking() -> tuple[str, str, str, dict[str, str]]:
    asked = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": "sleep 60"}]}
    return "POST", "/agents/demo/message:send", json.dumps({"message": asked}), JSON


def test_what_settles_within_the_drain_is_told_settled(host: Callable[..., Web]) -> None:
    site = host("20")
    with closing(connection(site)) as client, closing(connection(site)) as watcher:
        held = ask(watcher, "stream", "sleep 60")
        held.readline()
        method, path, body, headers = _blocking()
        client.request(method, path, body.replace("sleep 60", "sleep 2"), headers)
        eventually(lambda: Task.objects.count() == 2)  # it has come there
        terminate(site)
        task = json.loads(client.getresponse().read())["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    site.process.kill()  # the other agent sleeps on


@contextmanager
def kept_while_draining(site: Web) -> Iterator[http.client.HTTPConnection]:
    """A connection that was used before, at a process that drains."""
    with closing(connection(site)) as kept, closing(connection(site)) as watcher:
        stream = ask(watcher, "stream", "sleep 60")
        kept.request("GET", "/readyz")
        answer = kept.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"status":"ok"}')
        terminate(site)
        stream.read()  # it drains now
        yield kept
    site.process.kill()  # the agent sleeps on


def test_a_kept_connection_hears_that_it_is_not_ready(host: Callable[..., Web]) -> None:
    with kept_while_draining(host()) as kept:
        kept.request("GET", "/readyz")
        answer = kept.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (503, "close")


def test_a_kept_connection_is_answered_once_more_and_closed(host: Callable[..., Web]) -> None:
    with kept_while_draining(host()) as kept:
        answer = ask(kept, "send", "echo x", configuration={"returnImmediately": True})
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert json.loads(answer.read())["task"]["id"]


def test_a_stream_that_begins_while_it_drains_tells_its_task_before_it_ends(
    host: Callable[..., Web],
) -> None:
    with kept_while_draining(host()) as kept:
        answer = ask(kept, "stream", "sleep 60")
        said = answer.read().decode()
    assert (answer.status, answer.headers["Connection"]) == (200, "close")
    assert '"task":' in said
    assert "subscribe again" in said
