"""Credentials made of noise: refused as wrong ones are, in every scheme, and never a fault of the host's."""

from __future__ import annotations

import base64
import contextlib
import random
from typing import Any

import pytest

from a2a_tasks.access import authentication
from a2a_tasks.access.authentication import Credentials, identify
from a2a_tasks.agents import registry
from a2a_tasks.protocol.errors import Unauthenticated
from lab.hostile.bending import NAMES, ODD, VALUES
from tests.support.access.certificates import as_in_rfc_9440, certificate
from tests.support.access.fixtures import issuer
from tests.support.access.issuer import Issuer

__all__ = ["issuer"]
pytestmark = [
    pytest.mark.usefixtures("host"),
    # Certificates of noise; nobody is told.
    pytest.mark.filterwarnings("ignore:Parsed a serial number"),
]
EACH = 400


def segment(data: bytes) -> str:
    """A segment of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def noise(chance: random.Random) -> str:
    """Characters that may be in a header."""
    return chance.randbytes(chance.choice((0, 1, 12, 300))).decode("latin-1").replace("\n", " ")


def bearer(chance: random.Random, good: str) -> str:
    """A token with something else in it."""
    head, claims, signature = good.split(".")
    name, value = (
        chance.choice((b'"kid"', b'"alg"', b'"typ"', b'"crit"', b'"x"', *NAMES)),
        chance.choice(VALUES),
    )
    odd = segment(b'{"alg":"RS256","kid":"one",' + name + b":" + value + b"}")
    tokens = [
        f"{odd}.{claims}.{signature}",
        f"{segment(value)}.{claims}.{signature}",
        f"{head}.{segment(value)}.{signature}",
        f"{head}.{claims}.{segment(chance.randbytes(256))}",
        f"{head}.{claims}{chance.choice('=.!AA')}.{signature}",
        good[: chance.randrange(len(good))],
        noise(chance),
    ]
    return f"Bearer {chance.choice(tokens)}"


def basic(chance: random.Random, good: str) -> str:
    """A name and a password that are none."""
    text = chance.choice(
        (*ODD, noise(chance).encode(), b"\xff:\xff", b"a\x00b:c", b":", b"a" * 5000 + b":b")
    )
    return "Basic " + chance.choice((base64.b64encode(text).decode(), noise(chance), "====", "A"))


def key(chance: random.Random, good: str) -> str:
    """An API key that is none."""
    return chance.choice(
        (
            noise(chance),
            "a2a_",
            "a2a__",
            "a2a_" + "a" * 12 + "_" + noise(chance),
            "a2a_\x00_x",
            "x" * 9000,
        )
    )


def proxied(chance: random.Random, good: str) -> str:
    """A certificate that is none, from a proxy that is believed."""
    whole = bytearray(base64.b64decode(as_in_rfc_9440(certificate("alice")).strip(":")))
    for _ in range(chance.randint(1, 6)):
        whole[chance.randrange(40)] = chance.randrange(256)
    bent = f":{base64.b64encode(bytes(whole)).decode()}:"
    cut = f":{base64.b64encode(bytes(whole[: chance.randrange(len(whole))])).decode()}:"
    pem = "-----BEGIN%20CERTIFICATE-----%0A" + noise(chance) + "%0A-----END%20CERTIFICATE-----"
    return chance.choice((bent, cut, pem, noise(chance), "::", ":A:", "%00"))


@pytest.mark.django_db(transaction=True)  # passwords are looked up in threads of their own
@pytest.mark.parametrize(
    ("header", "made"),
    [
        ("authorization", bearer),
        ("authorization", basic),
        ("x-api-key", key),
        ("client-cert", proxied),
    ],
    ids=["a token", "a password", "a key", "a certificate"],
)
async def test_noise_is_no_credential(
    header: str, made: Any, issuer: Issuer, settings: Any
) -> None:
    settings.A2A_ANONYMOUS = "0"
    settings.A2A_BASIC = True
    settings.A2A_MTLS_PEERS = "127.0.0.1"
    agent, good = registry.find("demo"), issuer.token()
    for number in range(EACH):
        text = made(random.Random(number), good)
        with contextlib.suppress(Unauthenticated):
            caller = await identify(Credentials({header: text}, "127.0.0.1"), agent)
            # One that can still be read is a certificate: whether it is good, the proxy says.
            assert made is proxied
            assert caller.principal.startswith("cert:")
    authentication.forget()
