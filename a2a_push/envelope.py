"""Webhook requests: the body in the dialect that registered the webhook, and the headers of one attempt. Pure.

The law: a `Notification` is made once, before the first attempt, and never changes: id, content type and body. Values
that a receiver checks against a clock or a secret are made for each attempt: timestamp, signatures, token, credentials
(docs/decisions/0019).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from a2a_push import bearer, signing
from a2a_push.keyring import KeyRing, audience_of, origin
from a2a_push.selection import join
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.protocol.values import PushConfig, Raw, Role, Task, replace

__all__ = [
    "OMITTED",
    "Notification",
    "PreparedRequest",
    "abridge",
    "describe",
    "notification",
    "prepare",
    "webhook_id",
]

API_KEY = "X-API-Key"
#: Schemes for a Bearer token; the samples of April 2025 use `jwt`.
BEARER = frozenset({"bearer", "jwt"})
_KNOWN = BEARER | {"basic", "apikey"}
#: Headers of seed-0 configs that only the host or the connection may set (RFC 9110 §7.6.1).
RESERVED = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "expect", "host", "http2-settings"}
    | {"keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
    | {signing.ID, signing.TIMESTAMP, signing.SIGNATURE}
)  # fmt: skip
#: The metadata member that marks an incomplete notification (docs/webhooks.md).
OMITTED = "urn:a2a-host:omitted"
OMITTED_TEXT = (
    "Too large for a notification: artifacts, history and long messages are left out. "
    "Get the task (GetTask, tasks/get) to read them."
)
#: The message for a status without one.
_MESSAGE = write(
    {"messageId": "omitted", "role": Role.AGENT.value, "parts": [{"text": OMITTED_TEXT}]}
)


@dataclass(frozen=True, slots=True)
class Notification:
    """The parts of a notification that do not change between attempts."""

    #: The header `webhook-id`.
    id: str
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """One request to send: POST, to this URL."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def __repr__(self) -> str:
        """Omit URL and headers, which hold secrets."""
        return f"PreparedRequest({origin(self.url)}, {len(self.body)} bytes)"


def webhook_id(config: int, task: int, task_id: str, number: int) -> str:
    """Return the constant id of a notification, made from the keys of config and task, and the event's number.

    The id of the task distinguishes databases that were set up anew and use the same keys again.
    """
    name = f"{config}/{task}/{number}/{task_id}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return "msg_" + base64.b32encode(digest[:20]).decode().lower()


def notification(id_: str, dialect: str, events: Sequence[LogEvent], task: Task) -> Notification:
    """Build the notification of events in a dialect: one event, or consecutive pieces of one artifact.

    `task` is their task in its present state; dialects whose webhooks get Tasks use it with the event's status.
    """
    spoken = DIALECTS[dialect]  # with default options: the draft's items always have their wrapper
    return Notification(id_, spoken.push_media_type, spoken.push_event(join(events), task))


def abridge(id_: str, dialect: str, task: Task, limit: int) -> Notification:
    """Build the replacement for a notification of more than `limit` bytes: this task, with a note about the rest."""
    note = {OMITTED: {"description": OMITTED_TEXT, "maxBytes": limit}}
    return describe(id_, dialect, _add_note(task, dialect, note))


def describe(id_: str, dialect: str, task: Task) -> Notification:
    """Build the notification of a task as it is: the first one of a webhook that comes late."""
    spoken = DIALECTS[dialect]
    return Notification(id_, spoken.push_media_type, spoken.push_task(task))


def _add_note(task: Task, dialect: str, note: dict[str, Any]) -> Task:
    """Return the task with a note in its metadata, or in its status message's where the dialect has no others."""
    spoken = DIALECTS[dialect]
    if spoken.has_metadata and spoken.pushes_content:
        return replace(task, metadata=_with_metadata(task.metadata or Raw(b"{}"), note))
    status = task.status
    message = msgspec.json.decode(status.message or _MESSAGE, type=dict[str, Raw])
    message["metadata"] = _with_metadata(message.get("metadata", Raw(b"{}")), note)
    return replace(task, status=replace(status, message=Raw(msgspec.json.encode(message))))


def _with_metadata(old: Raw, more: dict[str, Any]) -> Raw:
    members = msgspec.json.decode(old, type=dict[str, Raw])
    return Raw(msgspec.json.encode({**members, **more}))


def prepare(
    notification: Notification,
    config: PushConfig,
    keys: KeyRing,
    *,
    tenant: str,
    issuer: str,
    now: float,
) -> PreparedRequest:
    """Return the request of an attempt at `now` (seconds since 1970); `issuer` is the host's name in tokens.

    `tenant` is that of the task; the signing keys are the webhook's.
    """
    audience = audience_of(tenant, config.url, config.id, config.task_id)
    own = signing.own_secrets(config.token)
    signed = signing.sign((*own, *keys.signers(audience)), notification.id, now, notification.body)
    headers: list[tuple[str, str]] = [("Content-Type", notification.content_type), *signed]
    headers += [  # of a seed-0 config
        (name, value)
        for name, value in config.headers.items()
        if name.lower() not in RESERVED and not name.lower().startswith("proxy-")
    ]
    if config.token and not own:
        headers += [(name, config.token) for name in DIALECTS[config.dialect].token_headers]
    of = {"taskId": config.task_id, "tenant": tenant, "configId": config.id}
    headers += _authorization(config, notification, keys, of, issuer=issuer, now=now)
    return PreparedRequest(config.url, tuple(headers), notification.body)


def _authorization(
    config: PushConfig,
    notification: Notification,
    keys: KeyRing,
    of: Mapping[str, str],
    *,
    issuer: str,
    now: float,
) -> list[tuple[str, str]]:
    """Return the config's credentials, or the host's own token where the config leaves the choice to the host."""
    known = (scheme for scheme in config.schemes if scheme.lower() in _KNOWN)
    scheme = next(known, "") or next(iter(config.schemes), "")
    if config.credentials and scheme:
        return [_write_authorization(config, scheme)]
    if scheme.lower() not in BEARER:
        return []
    token = bearer.mint(
        keys.token_keys()[0],
        issuer=issuer,
        audience=origin(config.url),
        id_=notification.id,
        of=of,
        body=notification.body,
        now=now,
    )
    return [("Authorization", f"Bearer {token}")]


def _write_authorization(config: PushConfig, scheme: str) -> tuple[str, str]:
    """Return the header of scheme and credentials."""
    kind = "" if DIALECTS[config.dialect].one_scheme else scheme.lower()
    if kind == "apikey":
        return API_KEY, config.credentials
    if kind == "basic":
        return "Authorization", f"{scheme} {_basic(config.credentials)}"
    return "Authorization", f"{'Bearer' if kind == 'jwt' else scheme} {config.credentials}"


def _basic(credentials: str) -> str:
    """Return user and password in base64 (RFC 7617 §2), in which they may already be."""
    try:
        if b":" in base64.b64decode(credentials, validate=True):
            return credentials
    except (binascii.Error, ValueError):
        pass
    return base64.b64encode(credentials.encode()).decode()
