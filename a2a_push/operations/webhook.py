"""What a webhook must look like to be registered. Whether it may be called is asked when it is."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.values import PushConfig, replace

__all__ = ["registrable"]

LONGEST_ID, LONGEST_URL, LONGEST_SECRET = 256, 2048, 16 * 1024
#: Dialects in which a task has one webhook, named as the task (docs/decisions/0060).
ONE_A_TASK = frozenset({"s0", "v00", "v01", "v02"})
#: What a webhook without an id is called, where clients expect a fixed name.
UNNAMED = {"v03": "default"}
#: Python's parser drops some of these and others read them as something else, so that two see two addresses.
_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f\\]")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: The name of a header, and a scheme: `token` of RFC 9110 §5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def registrable(config: PushConfig, task_id: str, dialect: str) -> PushConfig:
    """The config as it is to be stored: with the ids of itself and its task, and its dialect.

    Raises InvalidParams, which names the wrong members as the client wrote them.
    """
    below = f"{config.path}." if config.path else ""
    wrong = [(below + name, text) for name, text in _violations(config)]
    if wrong:
        raise InvalidParams(violations=wrong)
    spoken = config.dialect or dialect
    own = task_id if spoken in ONE_A_TASK else UNNAMED.get(spoken) or str(uuid.uuid4())
    return replace(config, id=config.id or own, task_id=task_id, dialect=spoken)


def _violations(config: PushConfig) -> Iterator[tuple[str, str]]:
    if len(config.id) > LONGEST_ID or "\x00" in config.id:
        yield "id", f"must have at most {LONGEST_ID} characters, and no NUL"
    if flaw := _flaw(config.url):
        yield "url", flaw
    if len(_headed(config)) > LONGEST_SECRET:
        yield "authentication", f"is too long, with token and headers over {LONGEST_SECRET}"
    yield from _unspeakable(config)


def _headed(config: PushConfig) -> str:
    """Everything that will be sent in headers."""
    said = [config.token, config.credentials, *config.schemes]
    return "".join([*said, *config.headers, *config.headers.values()])


def _unspeakable(config: PushConfig) -> Iterator[tuple[str, str]]:
    """What cannot be in a header, or would begin another one (RFC 9110 §5.5)."""
    if _CONTROLS.search(config.token):
        yield "token", "must not hold control characters"
    if _CONTROLS.search(config.credentials):
        yield "authentication.credentials", "must not hold control characters"
    if not all(map(_TOKEN.fullmatch, config.schemes)):
        name = "scheme" if config.dialect == "v10" else "schemes"
        yield f"authentication.{name}", "must be the name of an authentication scheme"
    if not all(map(_TOKEN.fullmatch, config.headers)):
        yield "headers", "must have names of headers"
    if any(map(_CONTROLS.search, config.headers.values())):
        yield "headers", "must not hold control characters"


def _flaw(url: str) -> str:
    """What is wrong with a URL; empty = it could be called."""
    if len(url) > LONGEST_URL:
        return f"must have at most {LONGEST_URL} characters"
    if _NOT_IN_URLS.search(url):
        return "must not hold white space, control characters or backslashes"
    try:
        parts = urlsplit(url)
        _ = parts.port  # out of range: ValueError
    except ValueError:
        return "must be a URL"
    return _part_flaw(parts)


def _part_flaw(parts: SplitResult) -> str:
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return "must be an absolute http or https URL with a host"
    if "@" in parts.netloc:
        return "must not hold credentials"
    return ""
