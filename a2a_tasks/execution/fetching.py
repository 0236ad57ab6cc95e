"""Fetching files from URLs that clients sent: by the guard of all calls out, under the settings of fetching."""

from __future__ import annotations

import ssl
from functools import lru_cache

from a2a_tasks.agents import FileUnavailable
from a2a_tasks.conf import conf
from a2a_tasks.outbound import (
    AddressRefused,
    Answer,
    Client,
    Guard,
    Limits,
    Policy,
    Unanswered,
    trusting,
)
from a2a_tasks.protocol.media_types import UNKNOWN, plain

__all__ = ["fetch", "guard"]

SUCCESS = 200


async def fetch(
    url: str, most: int | None = None, seconds: float | None = None
) -> tuple[str, bytes]:
    """Media type and bytes of what is at a URL, at most `most` bytes within `seconds`; no more than the settings say.

    Redirects are not followed. Raises FileUnavailable, which says what is wrong to anybody and nothing of this network.
    """
    client = Client(guard(), limits=_limits(most, seconds), tls=_tls(conf.FETCH_CA_BUNDLE))
    try:
        return _content(await client.ask("GET", url, [("Accept", "*/*")]))
    except AddressRefused as refused:
        raise FileUnavailable(f"The URL of the file {refused.reason}.") from refused
    except Unanswered as fault:
        raise FileUnavailable("The file cannot be fetched: there is no answer.") from fault
    finally:
        await client.close()


def _content(answer: Answer) -> tuple[str, bytes]:
    if answer.status != SUCCESS:
        raise FileUnavailable(f"The file cannot be fetched: the answer is {answer.status}.")
    if answer.header("content-encoding").lower() not in {"", "identity"}:
        raise FileUnavailable("The file came compressed, which was not asked for.")
    if not answer.whole:
        raise FileUnavailable("The file is too large, or did not come in time.")
    return plain(answer.header("content-type")) or UNKNOWN, answer.body


def _limits(most: int | None, seconds: float | None) -> Limits:
    longest, largest = float(conf.FETCH_SECONDS), int(conf.FETCH_BYTES)
    total = longest if seconds is None else min(seconds, longest)
    return Limits(total=total, answer=largest if most is None else min(most, largest))


@lru_cache(maxsize=4)
def _tls(bundle: str) -> ssl.SSLContext:
    return trusting(bundle)


def guard() -> Guard:
    """The guard under the settings of now. Raises ValueError if one cannot be read (a system check says so at start)."""
    return _guard(
        conf.FETCH_ALLOW_HTTP,
        conf.FETCH_ALLOW_PRIVATE,
        conf.FETCH_ALLOW_NETWORKS,
        conf.FETCH_PROXY,
    )


@lru_cache(maxsize=4)
def _guard(http: bool, loopback: bool, allowed: str, proxy: str) -> Guard:
    return Guard(Policy.read(http=http, loopback=loopback, allowed=allowed, proxy=proxy))
