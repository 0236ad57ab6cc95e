"""Recognition of repeated requests: the key of a request, and the content that must be equal.

The key is that of draft-ietf-httpapi-idempotency-key-header, or the message id for agents that choose it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Any

import msgspec

from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import replace

__all__ = ["MAX_KEY_LENGTH", "fingerprint", "name_of_key", "name_of_message"]

MAX_KEY_LENGTH = 255
_VISIBLE = re.compile(r"[\x20-\x7e]+")
#: A String of Structured Fields (RFC 8941 §3.3.3), as the draft requires.
_QUOTED = re.compile(r'"((?:[^"\\]++|\\["\\])*+)"')
_encode = msgspec.json.Encoder(order="sorted").encode


def name_of_key(header: str) -> str:
    """Return the idempotency name of a request from its `Idempotency-Key`. Raises InvalidParams.

    A key in quotes, as the draft requires, is equal to the key without quotes.
    """
    text = header.strip()
    quoted = _QUOTED.fullmatch(text)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text
    if not _VISIBLE.fullmatch(key) or len(key) > MAX_KEY_LENGTH:
        raise InvalidParams.field(
            "Idempotency-Key", f"must be 1 to {MAX_KEY_LENGTH} visible ASCII characters"
        )
    return f"key/{key}"


def name_of_message(request: SendMessageRequest) -> str:
    """Return the idempotency name of a request from the id of its message and its task or context."""
    message = request.message
    place = ["task", message.task_id] if message.task_id else ["context", message.context_id]
    return f"message/{_digest([*place, message.message_id])}"


def fingerprint(request: SendMessageRequest, extensions: Collection[str]) -> str:
    """Return a digest of everything the work depends on.

    Excluded: the id of the message, which some dialects lack and some clients change with each attempt; the form of the
    answer (blocking or not, length of the history); and secrets of webhooks.
    """
    push = request.push_config
    return _digest(
        {
            "message": replace(request.message, message_id=""),
            "named": request.named,
            "metadata": request.metadata or {},
            "modes": request.accepted_output_modes,
            "extensions": sorted(extensions),
            "push": push and [push.id, push.url],
        }
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(_encode(value)).hexdigest()
