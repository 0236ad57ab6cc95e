"""The protocol of a request behind proxies."""

from __future__ import annotations

from typing import Any

from a2a_project.trusted_proxies import behind_proxies
from tests.support.rows import rows


async def scheme(peer: str, *said: bytes) -> str:
    """The scheme that the application sees."""
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    scope = {
        "type": "http",
        "scheme": "http",
        "client": (peer, 5000),
        "headers": [(b"x-forwarded-proto", value) for value in said],
    }
    await behind_proxies(application, ["10.0.0.7"])(scope, None, None)
    return str(seen[0]["scheme"])


@rows(
    "said, expected",
    [
        ([b"https"], "https"),
        ([b"https, http"], "https"),
        ([b"https,https,http"], "https"),
        ([b"http, https"], "http"),
        ([b"https", b"http"], "https"),
        ([b" , https"], "http"),
        ([b"gopher, https"], "http"),
        ([], "http"),
    ],
)
async def test_of_a_list_the_clients_own_counts(said: list[bytes], expected: str) -> None:
    assert await scheme("10.0.0.7", *said) == expected


async def test_nobody_else_is_believed() -> None:
    assert await scheme("10.0.0.8", b"https, http") == "http"
