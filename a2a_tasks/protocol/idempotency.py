"""Telling a request that is repeated from another one: its key, and what of it must be the same.

The key is that of draft-ietf-httpapi-idempotency-key-header, or the message's own id for agents that want it so.
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

__all__ = ["LONGEST_KEY", "fingerprint", "name_of_key", "name_of_message"]

LONGEST_KEY = 255
_VISIBLE = re.compile(r"[\x20-\x7e]+")
#: A String of Structured Fields (RFC 8941 §3.3.3), as the draft has it.
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_encode = msgspec.json.Encoder(order="sorted").encode


def name_of_key(header: str) -> str:
    """What a request is remembered by, from its `Idempotency-Key`. Raises InvalidParams.

    In quotes, as the draft wants it, or without: it is the same key.
    """
    text = header.strip()
    quoted = _QUOTED.fullmatch(text)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text
    if not _VISIBLE.fullmatch(key) or len(key) > LONGEST_KEY:
        raise InvalidParams.field(
            "Idempotency-Key", f"must be 1 to {LONGEST_KEY} visible ASCII characters"
        )
    return f"key/{key}"


def name_of_message(request: SendMessageRequest) -> str:
    """What a request is remembered by, from the id of its message and the task or context it is for."""
    message = request.message
    place = ["task", message.task_id] if message.task_id else ["context", message.context_id]
    return f"message/{_digest([*place, message.message_id])}"


def fingerprint(request: SendMessageRequest, extensions: Collection[str]) -> str:
    """A digest of everything the work depends on.

    Left out: the id of the message, which some dialects lack and some clients make anew for each attempt; how the
    answer is to be shown (blocking or not, length of the history); and secrets of webhooks.
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
