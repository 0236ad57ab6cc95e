"""The requirements on a webhook at its registration. The addresses of its host name are checked at every call."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

from a2a_push.address_guard import check_url
from a2a_push.signing import own_secrets, seems_secret
from a2a_tasks.outbound import AddressRefused
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.values import PushConfig, replace

__all__ = ["registrable"]

MAX_ID_LENGTH, MAX_SECRET_LENGTH = 256, 16 * 1024
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: The name of a header, and a scheme: `token` of RFC 9110 §5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def registrable(config: PushConfig, task_id: str, dialect: str) -> PushConfig:
    """Return the config for the store: with the ids of itself and its task, and its dialect.

    Raises InvalidParams, which names the wrong members by the client's names.
    """
    config = replace(config, dialect=config.dialect or dialect)
    below = f"{config.path}." if config.path else ""
    wrong = [(below + name, text) for name, text in _violations(config)]
    if wrong:
        raise InvalidParams(violations=wrong)
    features = DIALECTS[config.dialect].features
    own = task_id if features.one_webhook else features.webhook_id or str(uuid.uuid4())
    return replace(config, id=config.id or own, task_id=task_id)


def _violations(config: PushConfig) -> Iterator[tuple[str, str]]:
    """Yield wrong members with the reason.

    Values must not be too long, and must not end a header or begin another one (RFC 9110 §5.5).
    """
    if len(config.id) > MAX_ID_LENGTH or "\x00" in config.id:
        yield "id", f"must have at most {MAX_ID_LENGTH} characters, and no NUL"
    try:
        check_url(config.url)
    except AddressRefused as refused:
        yield "url", refused.reason
    sent = [config.token, config.credentials, *config.schemes]
    sent += [*config.headers, *config.headers.values()]
    if sum(map(len, sent)) > MAX_SECRET_LENGTH:
        yield "authentication", f"is too long, with token and headers over {MAX_SECRET_LENGTH}"
    yield from _secret_violations(config)
    if not all(map(_TOKEN.fullmatch, config.schemes)):
        name = "scheme" if DIALECTS[config.dialect].one_scheme else "schemes"
        yield f"authentication.{name}", "must be the name of an authentication scheme"
    if not all(map(_TOKEN.fullmatch, config.headers)):
        yield "headers", "must have names of headers"
    if any(map(_CONTROLS.search, config.headers.values())):
        yield "headers", "must not hold control characters"


def _secret_violations(config: PushConfig) -> Iterator[tuple[str, str]]:
    if _CONTROLS.search(config.token):
        yield "token", "must not hold control characters"
    if seems_secret(config.token) and not own_secrets(config.token):  # else it is sent in clear
        yield (
            "token",
            "must be whsec_ and 24 to 64 bytes in base64; of several, each, with spaces between",
        )
    if _CONTROLS.search(config.credentials):
        yield "authentication.credentials", "must not hold control characters"
    if seems_secret(config.credentials):
        yield (
            "authentication.credentials",
            "are sent in clear: a secret that signs belongs in token",
        )
    if any(map(seems_secret, config.headers.values())):  # of seed-0, which has no token
        yield "headers", "are sent in clear: they must not hold a secret that signs"
