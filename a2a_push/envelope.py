"""What is sent to a webhook: the body in the dialect that registered it, and the headers of one attempt. Pure.

The law: a `Notification` is made once, before the first attempt, and never changes: id, content type and body. What a
receiver holds against a clock or a secret is made for each attempt: timestamp, signatures, token, credentials
(docs/decisions/0092).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from a2a_push import bearer, signing
from a2a_push.keyring import Ring, audience_of, origin
from a2a_push.selection import SENT_EVENTS, joined
from a2a_tasks.protocol.dialects import DIALECTS, Subject
from a2a_tasks.protocol.dialects.v01 import V01
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, Recorded, fold
from a2a_tasks.protocol.values import UNSET, PushConfig, Raw, Role, Task, replace

__all__ = [
    "OMITTED",
    "SENT_TASKS",
    "Notification",
    "Prepared",
    "abridged",
    "content_type",
    "notification",
    "prepared",
    "webhook_id",
]

JSON, A2A_JSON = "application/json", "application/a2a+json"
NOTIFICATION_TOKEN, TOKEN = "X-A2A-Notification-Token", "X-A2A-Token"
API_KEY = "X-API-Key"
#: Schemes that mean a Bearer token; the samples of April 2025 say `jwt`.
BEARER = frozenset({"bearer", "jwt"})
_KNOWN = BEARER | {"basic", "apikey"}
#: Headers of seed-0 configs that are the host's or the connection's to say (RFC 9110 §7.6.1).
RESERVED = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "expect", "host", "http2-settings"}
    | {"keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
    | {signing.ID, signing.TIMESTAMP, signing.SIGNATURE}
)  # fmt: skip
_V01 = V01()
#: Dialects whose webhooks are sent the task with its artifacts.
SENT_TASKS = frozenset(DIALECTS) - SENT_EVENTS - {V01.code}
#: The member of the metadata that says that a notification is not whole (docs/webhooks.md).
OMITTED = "urn:a2a-host:omitted"
OMITTED_TEXT = (
    "Too large for a notification: artifacts, history and long messages are left out. "
    "Get the task (GetTask, tasks/get) to read them."
)
#: Dialects whose notifications have no metadata of their own; the status message has some in every dialect.
_WITHOUT_METADATA = frozenset({"s0", V01.code})
#: The message of a status that has none.
_MESSAGE = write(
    {"messageId": "omitted", "role": Role.AGENT.value, "parts": [{"text": OMITTED_TEXT}]}
)


@dataclass(frozen=True, slots=True)
class Notification:
    """What stays the same however often it is tried."""

    #: The `webhook-id`.
    id: str
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request to be made: POST, to this URL."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def __repr__(self) -> str:
        """Without URL and headers, which hold secrets."""
        return f"Prepared({origin(self.url)}, {len(self.body)} bytes)"


def webhook_id(config: int, task: int, task_id: str, number: int) -> str:
    """The id of a notification, the same whenever it is made: by the keys of config and task, and the event's number.

    The id of the task is for databases that were begun anew, and say the same keys again.
    """
    name = f"{config}/{task}/{number}/{task_id}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return "msg_" + base64.b32encode(digest[:20]).decode().lower()


def notification(id_: str, dialect: str, events: Sequence[Recorded], task: Task) -> Notification:
    """What a webhook registered in `dialect` is told of events: one, or consecutive pieces of one artifact.

    `task` is the task they are of, as it stands; dialects that are sent Tasks get it with the event's status.
    """
    event = joined(events)
    body = _item(dialect, event, task) if dialect in SENT_EVENTS else _whole(dialect, event, task)
    return Notification(id_, content_type(dialect), body)


def content_type(dialect: str) -> str:
    """The media type of a dialect's notifications."""
    return A2A_JSON if dialect == "v10" else JSON


def abridged(id_: str, dialect: str, task: Task, limit: int) -> Notification:
    """What a webhook is told instead of a notification of more than `limit` bytes: this task, and where the rest is."""
    task = _noted(task, dialect, {OMITTED: {"description": OMITTED_TEXT, "maxBytes": limit}})
    if dialect in SENT_EVENTS:
        subject = Subject(task.id, task.context_id)
        body = DIALECTS[dialect].first(subject, task, ended=False)[0]
    elif dialect == V01.code:
        body = write(_summary(task))
    else:
        body = DIALECTS[dialect].answer("GetTask", task)
    return Notification(id_, content_type(dialect), body)


def _noted(task: Task, dialect: str, note: dict[str, Any]) -> Task:
    """The task with a note in its metadata, or in those of its status message where the dialect has no others."""
    if dialect not in _WITHOUT_METADATA:
        return replace(task, metadata=_with_metadata(task.metadata or Raw(b"{}"), note))
    status = task.status
    said = msgspec.json.decode(status.message or _MESSAGE, type=dict[str, Raw])
    said["metadata"] = _with_metadata(said.get("metadata", Raw(b"{}")), note)
    return replace(task, status=replace(status, message=Raw(msgspec.json.encode(said))))


def _with_metadata(old: Raw, more: dict[str, Any]) -> Raw:
    members = msgspec.json.decode(old, type=dict[str, Raw])
    return Raw(msgspec.json.encode({**members, **more}))


def _item(dialect: str, event: Recorded, task: Task) -> bytes:
    """The item of a stream (StreamResponse, A2A 1.0 §4.3.3)."""
    spoken = DIALECTS[dialect]  # with nothing switched: the draft's items always have their wrapper
    final = event.kind is EventKind.STATUS and event.state in TERMINAL | spoken.manners.pauses
    return spoken.event(Subject(task.id, task.context_id), event, final=final)


def _whole(dialect: str, event: Recorded, task: Task) -> bytes:
    """The Task; in 0.1 both of what its texts say of it."""
    standing = fold(replace(task, history=UNSET), [event])
    if dialect == V01.code:
        return write(_summary(standing))
    spoken = DIALECTS[dialect]
    history = UNSET if spoken.manners.history == 0 else task.history
    return spoken.answer("GetTask", replace(standing, history=history))


def _summary(task: Task) -> dict[str, object]:
    status = _V01.status_of(task.status)
    ended = {"finalStatus": status} if task.status.state in TERMINAL else {}
    return {"eventType": "taskUpdate", "taskId": task.id, "status": status, **ended}


def prepared(
    told: Notification, config: PushConfig, keys: Ring, *, tenant: str, issuer: str, now: float
) -> Prepared:
    """The request of an attempt made at `now` (seconds since 1970); `issuer` is who the host says it is in tokens.

    `tenant` is that of the task; the keys that sign are the webhook's.
    """
    audience = audience_of(tenant, config.url, config.id, config.task_id)
    own = signing.own_secrets(config.token)
    signed = signing.sign((*own, *keys.signers(audience)), told.id, now, told.body)
    headers: list[tuple[str, str]] = [("Content-Type", told.content_type), *signed]
    headers += _stored(config)
    headers += [] if own else _token(config)
    of = {"taskId": config.task_id, "tenant": tenant, "configId": config.id}
    headers += _authorization(config, told, keys, of, issuer=issuer, now=now)
    return Prepared(config.url, tuple(headers), told.body)


def _stored(config: PushConfig) -> Iterator[tuple[str, str]]:
    """The headers of a seed-0 config."""
    for name, value in config.headers.items():
        lower = name.lower()
        if lower not in RESERVED and not lower.startswith("proxy-"):
            yield name, value


def _token(config: PushConfig) -> list[tuple[str, str]]:
    if not config.token:
        return []
    names = (TOKEN, NOTIFICATION_TOKEN) if config.dialect == "v01" else (NOTIFICATION_TOKEN,)
    return [(name, config.token) for name in names]


def _authorization(
    config: PushConfig,
    told: Notification,
    keys: Ring,
    of: Mapping[str, str],
    *,
    issuer: str,
    now: float,
) -> list[tuple[str, str]]:
    """How the host shows who it is: as the config says, by a token of its own where it leaves that to the host."""
    scheme = _scheme(config)
    if config.credentials and scheme:
        return [_shown(config, scheme)]
    if scheme.lower() not in BEARER:
        return []
    token = bearer.mint(
        keys.token_keys()[0],
        issuer=issuer,
        audience=origin(config.url),
        id_=told.id,
        of=of,
        body=told.body,
        now=now,
    )
    return [("Authorization", f"Bearer {token}")]


def _scheme(config: PushConfig) -> str:
    """The scheme to use: the first that is known, or else the first."""
    known = _first(scheme for scheme in config.schemes if scheme.lower() in _KNOWN)
    return known or _first(config.schemes)


def _first(schemes: Iterable[str]) -> str:
    return next(iter(schemes), "")


def _shown(config: PushConfig, scheme: str) -> tuple[str, str]:
    """The header of scheme and credentials; 1.0 has both as they were given (A2A 1.0 §4.3.3)."""
    kind = "" if config.dialect == "v10" else scheme.lower()
    if kind == "apikey":
        return API_KEY, config.credentials
    if kind == "basic":
        return "Authorization", f"{scheme} {_basic(config.credentials)}"
    return "Authorization", f"{'Bearer' if kind == 'jwt' else scheme} {config.credentials}"


def _basic(credentials: str) -> str:
    """User and password as base64 (RFC 7617 §2), which they may be already."""
    try:
        if b":" in base64.b64decode(credentials, validate=True):
            return credentials
    except (binascii.Error, ValueError):
        pass
    return base64.b64encode(credentials.encode()).decode()
