"""Odd and large tokens for a host that has an issuer: signed rightly, so that all of them is read, and not."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from lab.oddinput.doors import FILLS, HEAD, JSON, PLAIN, SMALL, Odd, make_request
from tests.support.access.issuer import AUDIENCE, Issuer

__all__ = ["list_tokens"]

#: Characters of a claim, so that a token has at most HEAD.
LENGTH = 10_000
MOMENTS: tuple[Any, ...] = (0, -1, 2**63, 1e308, "9" * LENGTH, [], {}, True, 10**4000)


def list_tokens(issuer: Issuer) -> Iterator[Odd]:
    """Yield calls with these tokens, those of plain letters before the odd ones of their door."""
    for door, tokens in (
        ("claims", _list_claims(issuer)),
        ("header", _list_headers(issuer)),
        ("bytes", _list_bytes(issuer)),
    ):
        for kind, token in tokens:
            heads = [head.encode() for head in (*JSON, f"Authorization: Bearer {token}")]
            line = b"POST /agents/demo/ HTTP/1.1"
            yield Odd(f"JWT {door}", kind, make_request(line, heads, SMALL.encode()))


def _list_claims(issuer: Issuer) -> Iterator[tuple[str, str]]:
    claims: dict[str, dict[str, Any]] = {PLAIN: {"sub": PLAIN * 200}}
    for name in ("sub", "iss", "aud", "scope", "scp", "jti", "azp", "other"):
        for fill in (PLAIN, " ", "/", "%", "\\", "ä", "\u0000", "\U0001f600"):
            claims[f"{name} {fill}"] = {name: (fill * LENGTH)[: LENGTH // len(fill.encode())]}
        claims[f"{name} in a list"] = {name: [AUDIENCE[:1]] * (LENGTH // 6)}
    for name in ("exp", "nbf", "iat"):
        for value in MOMENTS:
            claims[f"{name} {str(value)[:9]} {type(value).__name__}"] = {name: value}
    claims["keys"] = {f"k{n}": 1 for n in range(900)}
    claims["bound"] = {"cnf": {"x5t#S256": "A" * LENGTH}}
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    claims["deep"] = {"deep": deep}
    for kind, changed in claims.items():
        token = issuer.token(**{"aud": AUDIENCE, **changed})
        if len(token) <= HEAD:
            yield kind, token


def _list_headers(issuer: Issuer) -> Iterator[tuple[str, str]]:
    yield PLAIN, issuer.token(header={"kid": PLAIN * 2000}, aud=AUDIENCE)
    odd: dict[str, Any] = {f"kid {fill}": {"kid": (fill * 2000)[:2000]} for fill in FILLS}
    odd |= {
        "typ": {"typ": "x" * 6000},
        "crit": {"crit": ["exp"] * 900, "exp": 1},
        "jku": {"jku": "http://127.0.0.1:9/" + "x" * 4000},
        "jwk": {"jwk": {"kty": "RSA", "n": "A" * 6000, "e": "AQAB"}},
        "x5c": {"x5c": ["A" * 100] * 60},
        "members": {f"k{n}": 1 for n in range(600)},
    }
    for kind, header in odd.items():
        yield kind, issuer.token(header=header, aud=AUDIENCE)


def _list_bytes(issuer: Issuer) -> Iterator[tuple[str, str]]:
    """Yield what is no token of the issuer: other signatures, other bytes in the three places, other numbers of places."""
    good = issuer.token(aud=AUDIENCE)
    head, claims, signature = good.split(".")
    plain = PLAIN * (HEAD - len(head) - len(signature) - 30)
    yield PLAIN, f"{head}.{plain}.{signature}"
    yield "another signature", f"{head}.{claims}.{signature[:-6]}AAAAAA"
    yield "a long signature", f"{head}.{claims}.{'A' * 12_000}"
    yield "dots", "." * (HEAD - 30)
    yield "a token in dots", f"{head}.{'.' * 12_000}"
    unsigned, symmetric = _encode(b'{"alg":"none"}'), _encode(b'{"alg":"HS256","kid":"one"}')
    yield "no signature", f"{unsigned}.{claims}."
    yield "a symmetric one", f"{symmetric}.{claims}.{signature}"
    for unit in (b"[", b'{"a":', b"9", b'"\\u0000', b"\xff", b'{"alg":"RS256",', b"-"):
        odd = _encode((unit * 9000)[:9000])
        yield f"header of {unit!r}", f"{odd}.{claims}.{signature}"
        yield f"claims of {unit!r}", f"{head}.{odd}.{signature}"


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
