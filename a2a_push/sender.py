"""The sender of webhooks: it sends a prepared request and returns the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from a2a_push.address_guard import guard
from a2a_push.envelope import PreparedRequest
from a2a_push.retry_schedule import MAX_ASKED_SECONDS, read_retry_after
from a2a_tasks.conf import conf
from a2a_tasks.outbound import (
    Client,
    ClientLimits,
    FaultKind,
    IncomingAnswer,
    Unanswered,
    make_tls_context,
)
from a2a_tasks.store import clock
from a2a_tasks.telemetry import tracing

__all__ = ["Delivered", "Outcome", "AttemptRefused", "Sender"]

SUCCESS = range(200, 300)
#: Maximum bytes of an answer that are stored, and characters of the description of a fault.
EXCERPT, DETAIL = 1024, 200
#: Headers of a webhook without secrets.
OPEN_HEADERS = frozenset(
    {"content-type", "user-agent", "a2a-version", "a2a-extensions", "webhook-id"}
    | {"webhook-timestamp", "webhook-signature", "traceparent", "tracestate"}
)
#: A shorter secret would also match many harmless texts.
MIN_SECRET_LENGTH = 6
HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver accepted the notification: it answered 2xx."""

    status: int
    #: From the name lookup to the end of the answer.
    seconds: float
    #: The beginning of the answer, printable.
    excerpt: str


@dataclass(frozen=True, slots=True)
class AttemptRefused:
    """The receiver did not accept the notification, as far as the host knows."""

    kind: FaultKind
    #: Status of the answer; None if there was none.
    status: int | None
    seconds: float
    excerpt: str
    #: Seconds to wait, if the receiver asked for it; at most a day.
    retry_after: float | None
    #: A description for the operator.
    detail: str


Outcome = Delivered | AttemptRefused


class Sender:
    """The sender of webhooks, any number at once, in one loop. The owner closes it.

    Without a client it uses the settings of the time at which it is made.
    """

    def __init__(
        self, client: Client | None = None, *, now: Callable[[], float] = clock.estimate
    ) -> None:
        self._client = client or _client()
        self._now = now

    async def send(self, prepared: PreparedRequest) -> Outcome:
        """Send a request once. Any answer or failure of the receiver is an outcome, not an exception."""
        begun = time.monotonic()
        headers = (*prepared.headers, *tracing.headers().items())
        try:
            answer = await self._client.ask("POST", prepared.url, headers, prepared.body)
        except Unanswered as fault:
            seconds = time.monotonic() - begun
            detail = _redact(fault.detail, _secrets(prepared.headers), DETAIL)
            return AttemptRefused(fault.kind, None, seconds, "", None, detail)
        return self._outcome(answer, prepared, time.monotonic() - begun)

    async def close(self) -> None:
        """Close the idle connections."""
        await self._client.close()

    def _outcome(
        self, answer: IncomingAnswer, prepared: PreparedRequest, seconds: float
    ) -> Outcome:
        secrets = _secrets(prepared.headers)
        # Decoded as far as a secret reaches that begins within the excerpt.
        reach = EXCERPT + max((len(secret.encode()) for secret in secrets), default=0)
        excerpt = _redact(answer.body[:reach].decode(errors="replace"), secrets, EXCERPT)
        if answer.status in SUCCESS:
            return Delivered(answer.status, seconds, excerpt)
        retry_after = min(
            read_retry_after(answer.header("retry-after"), self._now()), MAX_ASKED_SECONDS
        )
        detail = f"answered {answer.status}"
        return AttemptRefused(
            FaultKind.STATUS, answer.status, seconds, excerpt, retry_after or None, detail
        )


def _redact(text: str, secrets: set[str], limit: int) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    printable = (char if char.isprintable() or char == "\n" else "\ufffd" for char in text[:limit])
    return "".join(printable)


def _secrets(headers: Iterable[tuple[str, str]]) -> set[str]:
    """Return the secrets that an answer may repeat: values of headers, and credentials after their scheme."""
    values = {value for name, value in headers if name.lower() not in OPEN_HEADERS}
    parts = values | {value.partition(" ")[2].strip() for value in values}
    return {part for part in parts if len(part) >= MIN_SECRET_LENGTH}


def _client() -> Client:
    limits = ClientLimits(connect=conf.WEBHOOK_CONNECT_SECONDS, total=conf.WEBHOOK_SECONDS)
    return Client(guard(), limits=limits, tls=make_tls_context(conf.WEBHOOK_CA_BUNDLE))
