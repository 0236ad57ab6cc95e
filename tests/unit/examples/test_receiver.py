"""The example receiver takes what the host sends, and nobody else's."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection

import httpx
import pytest

from a2a_push.envelope import Notification, prepare
from a2a_push.keyring import Audience, KeyRing
from a2a_tasks.protocol.values import PushConfig
from examples.receiver import MAX_BODY_BYTES, Receiver
from tests.support.rows import rows

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
RING = KeyRing.of(["whsec_" + base64.b64encode(b"m" * 32).decode()])
BODY = b'{"statusUpdate":{"taskId":"t-1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}'
MINE = Audience("", "https://hooks.example.com", "c-1")


def headers(body: bytes = BODY, *, token: str = SECRET, age: float = 0) -> dict[str, str]:
    """The headers of an attempt, as the host makes them."""
    config = PushConfig(
        url="https://hooks.example.com/hook", id="c-1", task_id="t-1", dialect="v10", token=token
    )
    notification = Notification("msg_1", "application/a2a+json", body)
    sent = prepare(notification, config, RING, tenant="", issuer="", now=time.time() - age)
    return dict(sent.headers)


def listening(secret: str) -> Iterator[httpx.Client]:
    """A client of a receiver in a thread."""
    with Receiver(0, secret) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{receiver.server_port}"
        try:
            with httpx.Client(base_url=address, trust_env=False) as client:
                yield client
        finally:
            receiver.shutdown()
            thread.join()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """It speaks to a receiver that shares SECRET with the host."""
    yield from listening(SECRET)


def test_a_notification_is_printed_and_told_from_its_repetition(
    client: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert client.post("/hook", content=BODY, headers=headers()).status_code == 204
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"msg_1 {json.dumps(json.loads(BODY))}"
    assert second == f"msg_1 (again) {json.dumps(json.loads(BODY))}"


def test_the_secret_the_host_makes_for_a_receiver_does_as_well() -> None:
    for client in listening(RING.secrets(MINE)[0].text):
        sent = headers(token="")
        assert client.post("/hook", content=BODY, headers=sent).status_code == 204


@rows(
    "body, sent",
    [
        (BODY, {}),
        (BODY + b" ", headers()),
        (BODY, headers(token="whsec_" + base64.b64encode(b"o" * 32).decode())),
        (BODY, headers(age=301)),
        (BODY, {**headers(), "webhook-timestamp": "x"}),
        (BODY, {**headers(), "webhook-signature": "v1"}),
        (BODY, {**headers(), "webhook-signature": "v1,%"}),
        (b"\xff", headers()),
        (b"no JSON", headers(b"no JSON")),
    ],
)
def test_what_may_be_anybodys_is_refused(
    client: httpx.Client, body: bytes, sent: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert client.post("/hook", content=body, headers=sent).status_code == 401
    assert capsys.readouterr().out == ""


@rows(
    "length, status",
    [
        (str(MAX_BODY_BYTES + 1), 413),
        ("9" * 5000, 413),
        ("-1", 411),
        ("", 411),
        ("x", 411),
        ("١", 411),
    ],
)
def test_a_body_of_a_size_it_does_not_take_is_not_read(
    client: httpx.Client, length: str, status: int
) -> None:
    connection = HTTPConnection("127.0.0.1", client.base_url.port, timeout=10)
    connection.putrequest("POST", "/hook")
    connection.putheader("Content-Length", length.encode())
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


def test_it_runs_with_one_command_and_makes_a_secret() -> None:
    command = [sys.executable, "-m", "examples.receiver", "0"]
    environ = {name: value for name, value in os.environ.items() if name != "RECEIVER_SECRET"}
    with subprocess.Popen(  # noqa: S603 - ours
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        try:
            url = child.stdout.readline().split()[-1]
            (secret,) = re.findall(r"token (whsec_\S+)", child.stdout.readline())
            sent = headers(token=secret)
            answer = httpx.post(url, content=BODY, headers=sent, trust_env=False)
            assert answer.status_code == 204
            assert child.stdout.readline().startswith("msg_1 {")
        finally:
            child.terminate()
