"""Downloads from URLs that clients sent, through the guard of outbound calls and with the settings of downloads."""

from __future__ import annotations

from a2a_tasks.agents import FileUnavailable
from a2a_tasks.agents.http import guard
from a2a_tasks.conf import conf
from a2a_tasks.outbound import (
    AddressRefused,
    Client,
    ClientLimits,
    IncomingAnswer,
    Unanswered,
    make_tls_context,
)
from a2a_tasks.protocol.media_types import UNKNOWN, plain
from a2a_tasks.telemetry import tracing

__all__ = ["fetch"]

SUCCESS = 200


async def fetch(
    url: str, max_bytes: int | None = None, seconds: float | None = None
) -> tuple[str, bytes]:
    """Download a URL, at most `max_bytes` bytes within `seconds`, within the settings; return media type and bytes.

    Redirects are not followed. Raises FileUnavailable, whose text is public and reveals nothing about this network.
    """
    client = Client(
        guard(), limits=_limits(max_bytes, seconds), tls=make_tls_context(conf.FETCH_CA_BUNDLE)
    )
    try:
        with tracing.call_span("GET", "GET", url) as call:
            headers = [("Accept", "*/*"), *tracing.headers().items()]
            answer = await client.ask("GET", url, headers)
            tracing.note_status(call, answer.status)
        return _content(answer)
    except AddressRefused as refused:
        raise FileUnavailable(f"The URL of the file {refused.reason}.") from refused
    except Unanswered as fault:
        raise FileUnavailable("The file cannot be fetched: there is no answer.") from fault
    finally:
        await client.close()


def _content(answer: IncomingAnswer) -> tuple[str, bytes]:
    if answer.status != SUCCESS:
        raise FileUnavailable(f"The file cannot be fetched: the answer is {answer.status}.")
    if answer.header("content-encoding").lower() not in {"", "identity"}:
        raise FileUnavailable("The file is compressed, although the request excludes that.")
    if not answer.whole:
        raise FileUnavailable("The file is too large, or did not come in time.")
    return plain(answer.header("content-type")) or UNKNOWN, answer.body


def _limits(max_bytes: int | None, seconds: float | None) -> ClientLimits:
    longest, largest = float(conf.FETCH_SECONDS), int(conf.FETCH_BYTES)
    total = longest if seconds is None else min(seconds, longest)
    return ClientLimits(
        total=total, answer=largest if max_bytes is None else min(max_bytes, largest)
    )
