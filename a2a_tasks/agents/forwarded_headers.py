"""The headers of a request that an agent reads: those that its class names, and none that carry credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.core.checks import CheckMessage, Error

from a2a_tasks.agents.agent import Agent
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import InvalidParams

__all__ = ["check", "pick"]

#: The syntax of a header's name (RFC 9110 §5.1).
NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
#: Headers are stored with the run, in clear. So those that carry credentials by their name are refused.
SECRET = re.compile(
    r"auth(?!ors?(?![a-z]))|cookie|credential|(api|subscription)-?key|passw|secret|token|jwt|(?<![a-z])cert"
)
#: Hints of the check.
NAMES = 'At most 64 letters, digits and hyphens, without "-bin" at the end, such as "x-user-id".'
ELSEWHERE = (
    "Headers are stored with the run, in clear. turn.caller has the caller; ask for a secret with "
    "turn.need_auth(..., hand_over=...)."
)


def pick(agent: Agent, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that the agent reads, by their names in lower case; `headers` has such names, too.

    Raises InvalidParams if together they have more than FORWARDED_HEADER_BYTES.
    """
    if not agent.forwarded_headers:
        return {}
    names = dict.fromkeys(name.lower() for name in agent.forwarded_headers)
    found = {name: headers[name] for name in names if name in headers}
    size = sum(len(name) + len(value.encode()) for name, value in found.items())
    if size > (most := int(conf.FORWARDED_HEADER_BYTES)):
        read = ", ".join(found)
        raise InvalidParams(
            f"The headers that the agent reads have {size} bytes, more than {most}: {read}"
        )
    return found


def check(agent: Agent) -> Iterable[CheckMessage]:
    """Yield the mistakes in the list of headers."""
    where = f"{type(agent).__module__}.{type(agent).__qualname__}"
    for fault, hint in _find_faults(agent.forwarded_headers):
        yield Error(f"forwarded_headers: {fault}", hint=hint, obj=where, id="a2a_tasks.E061")


def _find_faults(names: Any) -> Iterator[tuple[str, str]]:
    """Yield each mistake, and what to do."""
    if isinstance(names, str):
        yield f"{names!r} is no list", 'forwarded_headers = ["x-user-id"]'
        return
    keys = {str(conf.API_KEY_HEADER).lower(), str(conf.MTLS_HEADER).lower()}
    for name in names:
        low = name.lower() if isinstance(name, str) else ""
        if not NAME.fullmatch(low) or low.endswith("-bin"):  # metadata of gRPC that are bytes
            yield f"{name!r} is no name of a header with text", NAMES
        elif low in keys or SECRET.search(low):
            yield f"{name!r} is a header for credentials", ELSEWHERE
