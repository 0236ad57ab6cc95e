"""What webhooks are sent: the bodies of every dialect to the byte, and the headers of an attempt."""

from __future__ import annotations

import base64
import time
from typing import Any

import jwt
import pytest
from standardwebhooks import Webhook

from a2a_push import bearer
from a2a_push.envelope import Notification, PreparedRequest, notification, prepare, webhook_id
from a2a_push.keyring import Audience, KeyRing
from a2a_push.signing import Secret
from a2a_tasks.protocol.dialects import CLASSES
from a2a_tasks.protocol.dialects.v03_rest import V03Rest
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent
from a2a_tasks.protocol.values import PushConfig, Raw, Task, TaskState, TaskStatus
from tests.support.push.configs import CREDENTIALS, HEADER, TOKEN, config, tells_none
from tests.support.push.verification import SignatureMismatch, verify
from tests.support.rows import rows

S = TaskState
NOW = 1_700_000_000.0
THEN = "2026-11-21T10:00:00.000Z"
WHEN = "2026-11-21T10:00:01.000Z"
RING = KeyRing.of([Secret(b"n" * 32).text, Secret(b"o" * 32).text])
HOOKS = "https://hooks.example.com"
MINE = Audience("acme", HOOKS, "c-1")

#: The task as it stands, later than the events.
TASK = Task(
    id="task-1",
    context_id="ctx-1",
    status=TaskStatus(state=S.WORKING, timestamp=THEN),
    artifacts=[
        Raw(b'{"artifactId":"a-1","name":"report","parts":[{"text":"Hello "},{"raw":"aGk="}]}')
    ],
    history=[Raw(b'{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hi"}]}')],
    metadata=Raw(b'{"k":1}'),
)


def status(state: TaskState, message: str = "") -> LogEvent:
    """A change of the status."""
    said = f'"message":{message},' if message else ""
    body = f'{{"status":{{"state":"{state.value}",{said}"timestamp":"{WHEN}"}}}}'
    return LogEvent(number=5, kind=EventKind.STATUS, body=body, state=state)


def artifact(number: int, body: str) -> LogEvent:
    """A piece of an artifact."""
    return LogEvent(number=number, kind=EventKind.ARTIFACT, body=body)


COMPLETED = status(
    S.COMPLETED, '{"messageId":"m-2","role":"ROLE_AGENT","parts":[{"text":"done é"}]}'
)
AUTH_REQUIRED, CANCELED, REJECTED = map(status, (S.AUTH_REQUIRED, S.CANCELED, S.REJECTED))
WORKING = status(S.WORKING)
PIECES = (
    artifact(3, '{"artifact":{"artifactId":"a-1","name":"report","parts":[{"text":"Hello "}]}}'),
    artifact(
        4,
        '{"artifact":{"artifactId":"a-1","parts":[{"raw":"aGk=","filename":"f"}]},"append":true,"lastChunk":true}',
    ),
)

OLD_ARTIFACT = (
    '"artifacts":[{"name":"report","parts":[{"type":"text","text":"Hello "},'
    '{"type":"file","file":{"bytes":"aGk="}}],"index":0,"metadata":{"artifactId":"a-1"}}]'
)
DONE_00 = (
    '{"state":"completed","message":{"role":"agent","parts":[{"type":"text","text":"done é"}]},'
    f'"timestamp":"{WHEN}"}}'
)
AUTH_00 = (
    '{"state":"input-required","message":{"role":"agent","parts":[{"type":"text","text":"Authentication is required."}],'
    f'"metadata":{{"a2aState":"auth-required"}}}},"timestamp":"{WHEN}"}}'
)
KINDS = (
    '"artifacts":[{"artifactId":"a-1","name":"report","parts":[{"kind":"text","text":"Hello "},'
    '{"kind":"file","file":{"bytes":"aGk="}}]}],'
    '"history":[{"kind":"message","messageId":"m-1","role":"user","parts":[{"kind":"text","text":"hi"}]}],"metadata":{"k":1}'
)
DONE_03 = (
    '{"state":"completed","message":{"kind":"message","messageId":"m-2","role":"agent",'
    f'"parts":[{{"kind":"text","text":"done é"}}]}},"timestamp":"{WHEN}"}}'
)
TASK_03 = f'{{"kind":"task","id":"task-1","contextId":"ctx-1","status":{DONE_03},{KINDS}}}'

#: Dialect, what happened, and the body.
GOLDEN: list[tuple[str, tuple[LogEvent, ...], str]] = [
    (
        "s0",
        (COMPLETED,),
        f'{{"id":"task-1","sessionId":"ctx-1","status":{DONE_00},{OLD_ARTIFACT}}}',
    ),
    (
        "v00",
        (COMPLETED,),
        f'{{"id":"task-1","sessionId":"ctx-1","status":{DONE_00},{OLD_ARTIFACT},"metadata":{{"k":1}}}}',
    ),
    (
        "v00",
        (AUTH_REQUIRED,),
        f'{{"id":"task-1","sessionId":"ctx-1","status":{AUTH_00},{OLD_ARTIFACT},"metadata":{{"k":1}}}}',
    ),
    (
        "v01",
        (COMPLETED,),
        f'{{"eventType":"taskUpdate","taskId":"task-1","status":{DONE_00},"finalStatus":{DONE_00}}}',
    ),
    ("v01", (AUTH_REQUIRED,), f'{{"eventType":"taskUpdate","taskId":"task-1","status":{AUTH_00}}}'),
    ("v02", (COMPLETED,), TASK_03),
    ("v03", (COMPLETED,), TASK_03),
    (
        "v03",
        (REJECTED,),
        f'{{"kind":"task","id":"task-1","contextId":"ctx-1","status":{{"state":"rejected","timestamp":"{WHEN}"}},{KINDS}}}',
    ),
    *(
        (
            "dr",
            (event,),
            '{"statusUpdate":{"taskId":"task-1","contextId":"ctx-1",'
            f'"status":{{"state":"{word}","timestamp":"{WHEN}"}},"final":{final}}}}}',
        )
        for event, word, final in [
            (CANCELED, "cancelled", "true"),
            (status(S.INPUT_REQUIRED), "input-required", "true"),
            (WORKING, "working", "false"),
        ]
    ),
    (
        "dr",
        PIECES[1:],
        '{"artifactUpdate":{"taskId":"task-1","contextId":"ctx-1","artifact":{"artifactId":"a-1",'
        '"parts":[{"file":{"fileWithBytes":"aGk=","name":"f"}}]},"append":true,"lastChunk":true}}',
    ),
    (
        "v10",
        (COMPLETED,),
        '{"statusUpdate":{"taskId":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_COMPLETED",'
        f'"message":{{"messageId":"m-2","role":"ROLE_AGENT","parts":[{{"text":"done é"}}]}},"timestamp":"{WHEN}"}}}}}}',
    ),
    (
        "v10",
        PIECES[:1],
        '{"artifactUpdate":{"taskId":"task-1","contextId":"ctx-1",'
        '"artifact":{"artifactId":"a-1","name":"report","parts":[{"text":"Hello "}]}}}',
    ),
    (
        "v10",
        PIECES,
        '{"artifactUpdate":{"taskId":"task-1","contextId":"ctx-1","artifact":{"artifactId":"a-1","name":"report",'
        '"parts":[{"text":"Hello "},{"raw":"aGk=","filename":"f"}]},"lastChunk":true}}',
    ),
]


def told(dialect: str = "v10") -> Notification:
    """A notification."""
    return notification("msg_1", dialect, [COMPLETED], TASK)


def headers(now: float = NOW, /, **changes: Any) -> dict[str, str]:
    """The headers of an attempt, for a webhook of 1.0 or as said."""
    made = request(now, **changes)
    assert len({name.lower() for name, _ in made.headers}) == len(made.headers)
    return dict(made.headers)


def request(now: float = NOW, /, **changes: Any) -> PreparedRequest:
    """The request of an attempt."""
    where = config(**{"headers": {}, **changes})
    return prepare(
        told(where.dialect), where, RING, tenant="acme", issuer="https://me.example.com", now=now
    )


class TestTheBody:
    @rows(("dialect", "events", "expected"), GOLDEN)
    def test_is_what_the_dialect_has(
        self, dialect: str, events: tuple[LogEvent, ...], expected: str
    ) -> None:
        assert notification("msg_1", dialect, events, TASK).body.decode() == expected

    def test_is_there_for_every_dialect(self) -> None:
        assert {dialect for dialect, _, _ in GOLDEN} == {cls.code for cls in CLASSES}

    def test_is_the_same_for_a_webhook_of_0_3_over_either_binding(self) -> None:
        """Released peers send `kind` objects, however it was registered; so there is one code for both."""
        assert V03Rest.code == "v03"

    @rows("dialect", ["s0", "v00", "v02", "v03"])
    def test_of_a_task_has_the_status_of_the_event_whatever_came_later(self, dialect: str) -> None:
        body = notification("msg_1", dialect, [AUTH_REQUIRED], TASK).body
        assert WHEN.encode() in body
        assert THEN.encode() not in body

    @rows("dialect", ["s0", "v00", "v01"])
    def test_has_no_history_where_the_dialect_gives_none_unasked(self, dialect: str) -> None:
        assert b"history" not in told(dialect).body

    @rows(
        ("dialect", "expected"),
        [("v10", "application/a2a+json")]
        + [(code, "application/json") for code in ("s0", "v00", "v01", "v02", "v03", "dr")],
    )
    def test_has_the_media_type_of_the_dialect(self, dialect: str, expected: str) -> None:
        assert told(dialect).content_type == expected
        assert headers(dialect=dialect)["Content-Type"] == expected


class TestTheId:
    def test_is_the_same_whenever_it_is_made(self) -> None:
        assert webhook_id(1, 2, "task-1", 3) == "msg_li6nerfg5dyagml6e4swhobyommzyr5d"

    def test_is_another_for_each_config_task_and_event(self) -> None:
        made = {
            webhook_id(config, task, name, number)
            for config in (1, 11)
            for task in (1, 11)
            for name in ("1", "11", "1/1", "\udce9")
            for number in (1, 11)
        }
        assert len(made) == 2 * 2 * 4 * 2
        assert not [id_ for id_ in made if "." in id_]


class TestTheSignature:
    def test_verifies_with_every_live_key_of_the_receiver(self) -> None:
        made = request()
        for key in RING.verifiers(MINE):
            assert verify([key], dict(made.headers), made.body, NOW) == "msg_1"

    def test_verifies_in_the_reference_library(self) -> None:
        made = request(time.time())
        for key in RING.secrets(MINE):
            Webhook(key.text).verify(made.body, dict(made.headers))

    @rows("other", [Audience("beta", HOOKS, "c-1"), Audience("acme", HOOKS), Audience("", HOOKS)])
    def test_verifies_with_no_key_of_others_at_the_same_origin(self, other: Audience) -> None:
        made = request()
        for key in RING.verifiers(other):
            with pytest.raises(SignatureMismatch):
                verify([key], dict(made.headers), made.body, NOW)

    def test_is_of_the_attempt_and_the_rest_is_not(self) -> None:
        early, late = headers(NOW), headers(NOW + 3600)
        changed = {name for name in early if early[name] != late[name]}
        assert changed == {"webhook-timestamp", "webhook-signature"}
        assert request(NOW).body == request(NOW + 3600).body

    def test_is_also_that_of_the_receivers_own_secrets_which_are_not_sent(self) -> None:
        own, older = Secret(b"a" * 32), Secret(b"b" * 24)
        made = request(time.time(), token=f"{own.text} {older.text}")
        for key in (own, older, *RING.secrets(MINE)):
            Webhook(key.text).verify(made.body, dict(made.headers))
        assert "X-A2A-Notification-Token" not in dict(made.headers)
        assert "whsec_" not in str(made.headers)


class TestTheToken:
    @rows(
        ("dialect", "names"),
        [("v01", {"X-A2A-Token", "X-A2A-Notification-Token"})]
        + [(code, {"X-A2A-Notification-Token"}) for code in ("v00", "v02", "v03", "dr", "v10")],
    )
    def test_is_where_the_dialect_has_it(self, dialect: str, names: set[str]) -> None:
        found = headers(dialect=dialect)
        assert {name for name, value in found.items() if value == TOKEN} == names

    def test_is_nowhere_without_one(self) -> None:
        assert not [name for name in headers(token="") if "Token" in name]


class TestTheAuthorization:
    @rows(
        ("scheme", "credentials"),
        [
            ("Bearer", "x"),
            ("bearer", "x"),
            ("Basic", "user:word"),
            ("Custom", "a b"),
            ("ApiKey", "k"),
        ],
    )
    def test_of_1_0_is_as_it_was_given(self, scheme: str, credentials: str) -> None:
        found = headers(schemes=(scheme,), credentials=credentials)
        assert found["Authorization"] == f"{scheme} {credentials}"

    @rows("dialect", ["v00", "v01", "v02", "v03", "dr"])
    @rows(
        ("schemes", "expected"),
        [
            (("Bearer",), "Bearer x:y"),
            (("jwt",), "Bearer x:y"),
            (("Basic",), f"Basic {base64.b64encode(b'x:y').decode()}"),
            (("Custom", "Bearer", "Basic"), "Bearer x:y"),
            (("Basic", "Bearer"), f"Basic {base64.b64encode(b'x:y').decode()}"),
            (("HMAC", "Custom"), "HMAC x:y"),
        ],
    )
    def test_of_older_dialects_is_by_the_first_scheme_that_is_known(
        self, dialect: str, schemes: tuple[str, ...], expected: str
    ) -> None:
        found = headers(dialect=dialect, schemes=schemes, credentials="x:y")
        assert found["Authorization"] == expected

    def test_by_a_key_has_a_header_of_its_own(self) -> None:
        found = headers(dialect="v03", schemes=("ApiKey",))
        assert found["X-API-Key"] == CREDENTIALS
        assert "Authorization" not in found

    @rows(
        ("credentials", "expected"),
        [
            ("dXNlcjp3b3Jk", "dXNlcjp3b3Jk"),
            ("user:word", "dXNlcjp3b3Jk"),
            ("é:word", base64.b64encode("é:word".encode()).decode()),
            ("dXNlcg==", base64.b64encode(b"dXNlcg==").decode()),
        ],
    )
    def test_by_basic_is_encoded_unless_it_is_already(
        self, credentials: str, expected: str
    ) -> None:
        found = headers(dialect="v03", schemes=("Basic",), credentials=credentials)
        assert found["Authorization"] == f"Basic {expected}"

    @rows("dialect", ["v00", "v03", "dr", "v10"])
    @rows("scheme", ["Bearer", "bearer", "jwt"])
    def test_by_bearer_without_credentials_is_a_token_of_the_host(
        self, dialect: str, scheme: str
    ) -> None:
        made = request(time.time(), dialect=dialect, schemes=(scheme,), credentials="")
        kind, _, token = dict(made.headers)["Authorization"].partition(" ")
        known = jwt.PyJWKSet.from_dict(bearer.jwks(RING.token_keys()))
        claims = jwt.decode(token, known.keys[0], audience=HOOKS, issuer="https://me.example.com")
        assert (kind, claims["jti"], claims["taskId"]) == ("Bearer", "msg_1", "task-1")
        assert (claims["tenant"], claims["configId"]) == ("acme", "c-1")

    @rows("schemes", [(), ("Basic",), ("ApiKey",), ("Custom",)])
    def test_without_credentials_is_left_out_otherwise(self, schemes: tuple[str, ...]) -> None:
        for dialect in ("v03", "v10"):
            found = headers(dialect=dialect, schemes=schemes, credentials="")
            assert {"Authorization", "X-API-Key"}.isdisjoint(found)

    def test_without_a_scheme_is_left_out(self) -> None:
        assert "Authorization" not in headers(schemes=())


class TestTheHeadersOfSeed0:
    def seed(self, **stored: str) -> dict[str, str]:
        """The headers of an attempt."""
        named = {name.replace("_", "-"): value for name, value in stored.items()}
        return headers(dialect="s0", token="", schemes=(), credentials="", headers=named)

    def test_are_sent_as_they_are(self) -> None:
        found = self.seed(Authorization="Custom x", X_Key=HEADER)
        assert (found["Authorization"], found["X-Key"]) == ("Custom x", HEADER)

    @rows(
        "name",
        [
            "Host",
            "content_length",
            "Content_Type",
            "Transfer_Encoding",
            "Connection",
            "TE",
            "Upgrade",
            "Expect",
            "Keep_Alive",
            "Proxy_Authorization",
            "Content_Encoding",
            "HTTP2_Settings",
            "Trailer",
            "Webhook_Id",
            "Webhook_Timestamp",
            "webhook_signature",
        ],
    )
    def test_are_left_out_where_they_are_not_the_clients_to_say(self, name: str) -> None:
        assert "evil" not in self.seed(**{name: "evil"}).values()


class TestWhatIsShown:
    def test_of_a_request_is_no_secret(self) -> None:
        made = request(url=f"{HOOKS}/x?key={TOKEN}", headers={"X-Key": HEADER})
        tells_none(made)
        assert repr(made) == f"PreparedRequest({HOOKS}, {len(made.body)} bytes)"

    def test_is_what_the_config_says_of_the_url(self) -> None:
        where = PushConfig(url=f"{HOOKS}/x?y", dialect="v10")
        assert prepare(told(), where, RING, tenant="", issuer="i", now=NOW).url == f"{HOOKS}/x?y"
