"""The example receiver takes what the host sends, once, and nobody else's; and its page shows it safely."""

from __future__ import annotations

import base64
import datetime
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest
from joserfc.jwk import KeySet
from standardwebhooks.webhooks import Webhook

from a2a_push import bearer
from a2a_push.envelope import Notification, prepared
from a2a_push.keyring import Audience, Ring
from a2a_tasks.protocol.values import PushConfig
from examples.receiver.__main__ import HELP, made, new_secret, parser
from examples.receiver.inbox import KNOWN, Inbox
from examples.receiver.proofs import HostKeys, Key, Proofs
from examples.receiver.reading import Told, read
from examples.receiver.server import DIGITS, Receiver

RING = Ring.of(["whsec_" + base64.b64encode(b"m" * 32).decode()])
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
BODY = b'{"statusUpdate":{"taskId":"t-1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}'
TOLD = Notification("msg_1", "application/a2a+json", BODY)
ORIGIN = "https://hooks.example.com"
MINE = Audience("", ORIGIN, "c-1")


def headers(
    *, now: float | None = None, told: Notification = TOLD, **config: Any
) -> dict[str, str]:
    """The headers of an attempt, as the host makes them for a webhook of ORIGIN."""
    said = PushConfig(url=f"{ORIGIN}/hook", id="c-1", task_id="t-1", dialect="v10", **config)
    moment = time.time() if now is None else now
    sent = prepared(told, said, RING, tenant="", issuer="https://host.example.com", now=moment)
    return {name.lower(): value for name, value in sent.headers}


def host_keys() -> HostKeys:
    """The host's public keys, as they are at its JWKS."""
    return HostKeys(
        lambda: KeySet.import_key_set(json.loads(json.dumps(bearer.jwks(RING.token_keys()))))
    )


#: A receiver, what the webhook it registered says, and what is proven.
WAYS: list[tuple[Proofs, dict[str, Any], list[str]]] = [
    (Proofs(keys=(Key.read(SECRET),)), {"token": SECRET}, ["signature v1"]),
    (Proofs(keys=(Key.read(RING.secrets(MINE)[0].text),)), {}, ["signature v1"]),
    (Proofs(keys=(Key.read(RING.pairs(MINE)[0].public.text),)), {}, ["signature v1a"]),
    (Proofs(token="tok-en"), {"token": "tok-en"}, ["token"]),
    (Proofs(host=host_keys(), origin=ORIGIN), {"schemes": ("Bearer",)}, ["host's token"]),
]


@contextmanager
def running(proofs: Proofs) -> Iterator[tuple[Receiver, httpx.Client]]:
    """A receiver in a thread, and somebody who speaks to it."""
    receiver = Receiver(0, proofs, "a <proof>")
    thread = threading.Thread(target=receiver.serve_forever, args=(0.01,))
    thread.start()
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{receiver.server_port}", trust_env=False
        ) as client:
            yield receiver, client
    finally:
        receiver.shutdown()
        thread.join()
        receiver.server_close()


class TestProofs:
    @pytest.mark.parametrize(("proofs", "config", "proven"), WAYS)
    def test_what_the_host_sends_is_proven_in_every_way(
        self, proofs: Proofs, config: dict[str, Any], proven: list[str]
    ) -> None:
        assert proofs.check(headers(**config), BODY, time.time()) == proven

    @pytest.mark.parametrize(("proofs", "config", "proven"), [w for w in WAYS if not w[0].token])
    def test_another_body_is_refused(
        self, proofs: Proofs, config: dict[str, Any], proven: list[str]
    ) -> None:
        with pytest.raises(Exception, match=r"no key of ours|another body"):
            proofs.check(headers(**config), BODY + b" ", time.time())

    @pytest.mark.parametrize(("proofs", "config", "proven"), WAYS)
    def test_what_proves_nothing_is_refused(
        self, proofs: Proofs, config: dict[str, Any], proven: list[str]
    ) -> None:
        sent = {name: value for name, value in headers().items() if name != "webhook-signature"}
        with pytest.raises(Exception, match=r"no key of ours|not ours|no token"):
            proofs.check(sent, BODY, time.time())

    def test_all_that_is_known_is_asked_for(self) -> None:
        proofs = Proofs(keys=(Key.read(RING.secrets(MINE)[0].text),), token="tok-en")
        assert proofs.check(headers(token="tok-en"), BODY, time.time()) == ["signature v1", "token"]
        with pytest.raises(Exception, match="token is not ours"):
            proofs.check(headers(token="other"), BODY, time.time())

    def test_a_receiver_that_knows_nothing_believes_nobody(self) -> None:
        with pytest.raises(Exception, match="knows no key"):
            Proofs().check(headers(), BODY, time.time())

    @pytest.mark.parametrize("off", [-301, 301])
    def test_an_old_signature_is_refused(self, off: int) -> None:
        (proofs, config, _), *_ = WAYS
        now = int(time.time())  # one moment, and whole: a timestamp has no fractions
        with pytest.raises(Exception, match="not of now"):
            proofs.check(headers(now=now + off, **config), BODY, now)

    @pytest.mark.parametrize("said", ["", "x", "-5", "1e9", "١٢٣", "9" * 5000])
    def test_an_odd_timestamp_is_refused(self, said: str) -> None:
        sent = {**headers(token=SECRET), "webhook-timestamp": said}
        with pytest.raises(Exception, match="not of now"):
            WAYS[0][0].check(sent, BODY, time.time())

    def test_understands_the_reference_library(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        sent = {
            "webhook-id": "msg_2",
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": "v1,bm9ib2R5 " + Webhook(SECRET).sign("msg_2", now, BODY.decode()),
        }
        assert WAYS[0][0].check(sent, BODY, time.time()) == ["signature v1"]

    @pytest.mark.parametrize("flaw", ["aud", "exp", "jti", "key"])
    def test_a_token_for_something_else_is_refused(self, flaw: str) -> None:
        now = time.time()
        ring = Ring.of([new_secret()]) if flaw == "key" else RING
        token = bearer.mint(
            ring.token_keys()[0],
            issuer="https://host.example.com",
            audience="https://other.example.com" if flaw == "aud" else ORIGIN,
            id_="msg_0" if flaw == "jti" else "msg_1",
            of={"taskId": "t-1"},
            body=BODY,
            now=now - 3600 if flaw == "exp" else now,
        )
        proofs = Proofs(host=host_keys(), origin=ORIGIN)
        sent = {"webhook-id": "msg_1", "authorization": f"Bearer {token}"}
        with pytest.raises(Exception, match="token"):
            proofs.check(sent, BODY, now)

    def test_keys_are_fetched_once_and_not_again_and_again_for_tokens_of_nobody(self) -> None:
        fetches: list[int] = []

        def fetch() -> KeySet:
            fetches.append(1)
            return KeySet.import_key_set(json.loads(json.dumps(bearer.jwks(RING.token_keys()))))

        proofs = Proofs(host=HostKeys(fetch), origin=ORIGIN)
        for _ in range(3):
            proofs.check(headers(schemes=("Bearer",)), BODY, time.time())
            with pytest.raises(Exception, match="token"):
                proofs.check({"authorization": "Bearer x.y.z"}, BODY, time.time())
        assert len(fetches) == 1

    def test_a_host_that_is_away_is_no_proof(self) -> None:
        def fetch() -> KeySet:
            raise ConnectionRefusedError("nobody there")

        with pytest.raises(Exception, match="cannot be fetched"):
            Proofs(host=HostKeys(fetch), origin=ORIGIN).check(headers(schemes=("Bearer",)), BODY, 0)

    @pytest.mark.parametrize(
        "text", ["", "whsec_", "whsec_eHg=", "whpk_" + "A" * 64, "secret", "whsec_?"]
    )
    def test_a_key_that_is_none_is_refused_and_not_repeated(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"^a key is whsec_ or whpk_ and base64$"):
            Key.read(text)


class TestReading:
    @pytest.mark.parametrize(
        ("body", "told"),
        [
            (
                {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "2027-01-15T08:00:00Z"}}},
                Told("status", "t", "input-required", "2027-01-15T08:00:00Z"),
            ),
            (
                {"artifactUpdate": {"taskId": "t", "append": True, "lastChunk": True, "artifact": {"artifactId": "a", "parts": [{"text": "x"}, {"text": "y"}]}}},
                Told("artifact", "t", artifact="a", append=True, last=True, text="x y"),
            ),
            ({"kind": "task", "id": "t", "status": {"state": "completed"}}, Told("task", "t", "completed")),
            ({"eventType": "taskUpdate", "taskId": "t", "status": {"state": "failed"}}, Told("task", "t", "failed")),
            ({"message": {"taskId": "t", "parts": [{"text": "hi"}]}}, Told("message", "t", text="hi")),
            ({"anything": 1}, Told("unknown")),
            ({"statusUpdate": {"taskId": 5, "status": "x"}}, Told("status")),
        ],
    )  # fmt: skip
    def test_reads_every_dialect_and_minds_no_oddity(
        self, body: Mapping[str, Any], told: Told
    ) -> None:
        assert read(json.dumps(body).encode()) == told

    @pytest.mark.parametrize("body", [b"", b"[]", b"1", b"{", b"\xff"])
    def test_what_is_no_object_is_refused(self, body: bytes) -> None:
        with pytest.raises(ValueError, match=r"."):
            read(body)


class TestInbox:
    def take(self, inbox: Inbox, told: Told, id_: str) -> str:
        return inbox.take(at=0, path="/", id_=id_, told=told, proven=[]).disorder

    def test_each_notification_counts_once(self) -> None:
        inbox = Inbox()
        told = Told("status", "t", "completed")
        assert [self.take(inbox, told, "m-1") for _ in range(3)] == [""] * 3
        assert (inbox.counts["new"], inbox.counts["again"]) == (1, 2)
        assert [arrival.again for arrival in inbox.newest()] == [True, True, False]

    @pytest.mark.parametrize(
        ("tells", "disorder"),
        [
            ([Told("status", "t", "working"), Told("status", "t", "completed")], ""),
            ([Told("status", "t", "completed"), Told("status", "t", "working")], "the task was completed before"),
            ([Told("status", "t", "working", "2027-01-15T08:00:01Z"), Told("status", "t", "working", "2027-01-15T08:00:00.5Z")], "a later status came before"),
            ([Told("artifact", "t", artifact="a"), Told("artifact", "t", artifact="a", append=True)], ""),
            ([Told("artifact", "t", artifact="a", append=True)], "its artifact was not begun"),
            ([Told("artifact", "t", artifact="a", last=True), Told("artifact", "t", artifact="a", append=True)], "its artifact was complete"),
            ([Told("artifact", "t", artifact="a", last=True), Told("artifact", "t", artifact="a")], ""),
            ([Told("status", "t", "completed"), Told("status", "other", "working")], ""),
            ([Told("status", "t", "working", "soon"), Told("status", "t", "working", "")], ""),
        ],
    )  # fmt: skip
    def test_tells_what_is_out_of_order(self, tells: list[Told], disorder: str) -> None:
        inbox = Inbox()
        said = [self.take(inbox, told, f"m-{n}") for n, told in enumerate(tells)]
        assert said[-1] == disorder
        assert not any(said[:-1])

    def test_forgets_the_oldest(self) -> None:
        inbox = Inbox()
        for n in range(KNOWN + 1):
            self.take(inbox, Told("unknown"), f"m-{n}")
        self.take(inbox, Told("unknown"), "m-1")
        assert inbox.counts["again"] == 1


class TestReceiver:
    def test_takes_a_notification_once_and_shows_both_arrivals(self) -> None:
        with running(WAYS[0][0]) as (receiver, client):
            for _ in range(2):
                answer = client.post("/hook", content=BODY, headers=headers(token=SECRET))
                assert answer.status_code == 204
            shown = client.get("/").text
        assert receiver.inbox.counts == {"new": 1, "again": 1, "out of order": 0, "refused": 0}
        assert "signature v1" in shown
        assert "came before" in shown

    def test_refuses_what_may_be_anybodys_and_goes_on(self) -> None:
        with running(WAYS[0][0]) as (receiver, client):
            assert client.post("/hook", content=BODY).status_code == 401
            assert client.post("/hook", content=b"[]", headers=signed(b"[]")).status_code == 400
            deep = b"[" * 100_000
            assert client.post("/hook", content=deep, headers=signed(deep)).status_code == 400
            assert client.post("/hook", content=BODY, headers=signed(BODY)).status_code == 204
        assert receiver.inbox.counts["refused"] == 3

    @pytest.mark.parametrize(
        ("length", "status"), [("9" * DIGITS, 413), ("-1", 411), ("", 411), ("x", 411)]
    )
    def test_reads_nothing_of_a_size_it_does_not_take(self, length: str, status: int) -> None:
        with running(WAYS[0][0]) as (receiver, _):
            connection = HTTPConnection("127.0.0.1", receiver.server_port, timeout=10)
            connection.putrequest("POST", "/hook")
            connection.putheader("Content-Length", length)
            connection.endheaders()
            assert connection.getresponse().status == status
            connection.close()

    def test_shows_what_others_said_as_text(self) -> None:
        evil = "<script>alert(1)</script>\"'&"
        body = json.dumps(
            {
                "artifactUpdate": {
                    "taskId": evil,
                    "artifact": {"artifactId": evil, "parts": [{"text": evil}]},
                }
            }
        ).encode()
        with running(WAYS[0][0]) as (_, client):
            assert client.post("/" + evil, content=body, headers=signed(body)).status_code == 204
            client.post("/hook", content=b"", headers={"webhook-id": evil})
            answer = client.get("/")
        assert "&lt;script&gt;" in answer.text
        assert "<script" not in answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"

    def test_has_one_page(self) -> None:
        with running(WAYS[0][0]) as (_, client):
            empty = client.get("/").text
            assert client.get("/other").status_code == 404
        assert "Nothing has arrived yet." in empty
        assert "a &lt;proof&gt;" in empty


def signed(body: bytes) -> dict[str, str]:
    """Headers for another body."""
    return headers(token=SECRET, told=Notification("msg_3", "application/json", body))


class TestCommandLine:
    @pytest.mark.parametrize(
        ("arguments", "environ", "asks"),
        [
            ([], {}, "a signature"),
            ([], {"RECEIVER_KEYS": f"{SECRET} {RING.pairs(MINE)[0].public.text}"}, "a signature"),
            ([], {"RECEIVER_TOKEN": "t"}, "the token"),
            (["--host", "http://127.0.0.1:8000"], {"RECEIVER_KEYS": SECRET}, "a signature, a token of the host"),
        ],
    )  # fmt: skip
    def test_asks_for_what_it_was_told_of(
        self, arguments: list[str], environ: dict[str, str], asks: str
    ) -> None:
        with made(parser().parse_args([*arguments, "--port", "0"]), environ) as receiver:
            assert receiver.asks == asks

    def test_refuses_a_bad_key_without_repeating_it(self) -> None:
        with pytest.raises(SystemExit, match="RECEIVER_KEYS: a key is"):
            made(parser().parse_args(["--port", "0"]), {"RECEIVER_KEYS": "whsec_bad"})

    def test_runs_with_one_command_and_says_what_to_do_next(self) -> None:
        command = [sys.executable, "-m", "examples.receiver", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - ours
            try:
                said = lines_until(child, lambda line: line.startswith("curl"))
                page = re.findall(r"shown at (http://127\.0\.0\.1:\d+/)", said)
                (config,) = re.findall(r'{"url": "http[^}]+}', said)
                answer = httpx.get(page[0], trust_env=False)
            finally:
                child.terminate()
        assert "Nothing has arrived yet." in answer.text
        Key.read(json.loads(config)["token"])

    def test_explains_itself(self) -> None:
        assert " ".join(HELP.split()) in " ".join(parser().format_help().split())


def lines_until(child: subprocess.Popen[str], last: Callable[[str], bool]) -> str:
    """What it writes, up to that line."""
    assert child.stdout is not None
    lines: list[str] = []
    for line in child.stdout:
        lines.append(line)
        if last(line):
            break
    return "".join(lines)
