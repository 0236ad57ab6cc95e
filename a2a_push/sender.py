"""One delivery of a webhook: what was prepared goes out, and an outcome comes back, whatever the receiver does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from a2a_push.address_guard import guard
from a2a_push.retry_schedule import LONGEST_ASKED, asked_seconds
from a2a_tasks.conf import conf
from a2a_tasks.outbound import Answer, Client, Kind, Limits, Unanswered, trusting

__all__ = ["Delivered", "Outcome", "Prepared", "Refused", "Sender"]

SUCCESS = range(200, 300)
#: Bytes of an answer that are kept to be shown, and characters of what is said of a fault.
EXCERPT, DETAIL = 1024, 200
#: Headers of a webhook that are no secret.
OPEN_HEADERS = frozenset(
    {"content-type", "user-agent", "a2a-version", "a2a-extensions", "webhook-id"}
    | {"webhook-timestamp", "webhook-signature", "traceparent", "tracestate"}
)
#: A secret shorter than this is found in too much that is none.
SHORTEST_SECRET = 6
HIDDEN = "[hidden]"


class Prepared(Protocol):
    """What is sent."""

    @property
    def url(self) -> str:
        """Where to."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """All of them, but those of the connection."""

    @property
    def body(self) -> bytes:
        """As it was signed."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver has taken it: it answered 2xx."""

    status: int
    #: From the look at the name to the end of the answer.
    seconds: float
    #: The beginning of its answer, printable.
    excerpt: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The receiver has not taken it, as far as we know."""

    kind: Kind
    #: Of the answer; None if there was none.
    status: int | None
    seconds: float
    excerpt: str
    #: Seconds to wait, if the receiver asked for it; at most a day.
    retry_after: float | None
    #: What happened, for the operator.
    detail: str


Outcome = Delivered | Refused


class Sender:
    """Sends webhooks, any number at once, in one loop. Close it.

    By itself it goes by the settings of the moment it is made.
    """

    def __init__(
        self, client: Client | None = None, *, now: Callable[[], float] = time.time
    ) -> None:
        self._client = client or _client()
        self._now = now

    async def send(self, prepared: Prepared) -> Outcome:
        """Send it once. Raises nothing, whatever the receiver does."""
        begun = time.monotonic()
        try:
            answer = await self._client.ask("POST", prepared.url, prepared.headers, prepared.body)
        except Unanswered as fault:
            seconds = time.monotonic() - begun
            detail = _shown(fault.detail, _secrets(prepared.headers), DETAIL)
            return Refused(fault.kind, None, seconds, "", None, detail)
        return self._outcome(answer, prepared, time.monotonic() - begun)

    async def close(self) -> None:
        """Close the connections nobody uses."""
        await self._client.close()

    def _outcome(self, answer: Answer, prepared: Prepared, seconds: float) -> Outcome:
        excerpt = _excerpt(answer.body, _secrets(prepared.headers))
        if answer.status in SUCCESS:
            return Delivered(answer.status, seconds, excerpt)
        asked = min(asked_seconds(answer.header("retry-after"), self._now()), LONGEST_ASKED)
        detail = f"answered {answer.status}"
        return Refused(Kind.STATUS, answer.status, seconds, excerpt, asked or None, detail)


def _excerpt(body: bytes, secrets: set[str]) -> str:
    # Decoded as far as a secret may reach that begins within what is shown.
    reach = EXCERPT + max((len(secret.encode()) for secret in secrets), default=0)
    return _shown(body[:reach].decode(errors="replace"), secrets, EXCERPT)


def _shown(text: str, secrets: set[str], most: int) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    printable = (char if char.isprintable() or char == "\n" else "\ufffd" for char in text[:most])
    return "".join(printable)


def _secrets(headers: Iterable[tuple[str, str]]) -> set[str]:
    """What a receiver may give back that nobody should read: values of headers, and credentials after their scheme."""
    values = {value for name, value in headers if name.lower() not in OPEN_HEADERS}
    parts = values | {value.partition(" ")[2].strip() for value in values}
    return {part for part in parts if len(part) >= SHORTEST_SECRET}


def _client() -> Client:
    limits = Limits(connect=conf.WEBHOOK_CONNECT_SECONDS, total=conf.WEBHOOK_SECONDS)
    return Client(guard(), limits=limits, tls=trusting(conf.WEBHOOK_CA_BUNDLE))
