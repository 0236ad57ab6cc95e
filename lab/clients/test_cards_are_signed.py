"""Cards of running hosts are verified by the official SDK and by our command, before, while and after keys are rotated."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver
from a2a.types import AgentCard
from a2a.utils.signing import InvalidSignaturesError, NoSignatureError
from django.core.management import call_command

from lab.clients.programs.environments import HERE, NODE, node_modules
from tests import ROOT, backend
from tests.journeys.hosts import Web, web
from tests.journeys.waiting import PATIENCE
from tests.support.signatures.given import sdk_verifier

PUBLIC_URL = "https://agents.example.com"
CARD, JWKS = "/.well-known/agent-card.json", "/.well-known/jwks.json"
PLACES = ["", "/agents/tables", "/agents/demo/a2a/1.0"]


@dataclass(frozen=True)
class Told:
    """What a web process says of itself."""

    url: str

    def get(self, path: str) -> httpx.Response:
        """Ask for it."""
        return httpx.get(self.url + path, timeout=PATIENCE, trust_env=False).raise_for_status()

    @property
    def keys(self) -> list[dict[str, Any]]:
        """The published keys."""
        found: list[dict[str, Any]] = self.get(JWKS).json()["keys"]
        return found

    def card(self, keys: list[dict[str, Any]], place: str = "") -> AgentCard:
        """The card, fetched and verified by the official SDK with these keys. Raises as that does."""
        return asyncio.run(self._card(keys, place))

    async def _card(self, keys: list[dict[str, Any]], place: str) -> AgentCard:
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
            resolver = A2ACardResolver(http, self.url + place)
            return await resolver.get_agent_card(signature_verifier=sdk_verifier(keys))


def card_keys(*arguments: str) -> list[str]:
    """Have the command do it, as an operator; the names of the keys then, newest first."""
    command = [sys.executable, "manage.py", "card_keys", *arguments]
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=ROOT, env=backend.children(), capture_output=True, text=True, check=True
    )
    return [line.split()[0] for line in done.stdout.splitlines()[:-1]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a new key."""
    path = tmp_path / "card.keys"
    card_keys("make", str(path))
    return path


@pytest.fixture
def running(emptied: None) -> Iterator[ExitStack]:
    """Processes that end with the test."""
    with ExitStack() as stack:
        yield stack


def started(running: ExitStack, file: Path) -> Told:
    """A web process with the keys as they are in the file now."""
    environ = {"A2A_PUBLIC_URL": PUBLIC_URL, "A2A_CARD_KEYS": str(file)}
    process: Web = running.enter_context(web(environ))
    return Told(process.url)


def test_every_process_gives_the_same_signed_card(running: ExitStack, file: Path) -> None:
    number = 2 if backend.backend() == backend.STACK else 1
    hosts = [started(running, file) for _ in range(number)]
    for place in PLACES:
        answers = [host.get(place + CARD) for host in hosts]
        assert len({(answer.content, answer.headers["etag"]) for answer in answers}) == 1
        for host in hosts:
            card = host.card(hosts[0].keys, place)
            assert card.supported_interfaces[0].url.startswith(PUBLIC_URL)
            with pytest.raises(InvalidSignaturesError):
                host.card([], place)
        out = io.StringIO()
        call_command("verify_card", hosts[-1].url + place, stdout=out)
        assert out.getvalue().startswith("verified: key ")


def test_a_key_is_rotated_and_nobody_is_left_with_a_card_he_cannot_verify(
    running: ExitStack, file: Path
) -> None:
    before = started(running, file)
    new, old = card_keys("rotate", str(file))
    during = started(running, file)
    for keys in (before.keys, during.keys):  # what a reader has kept, and what it gets now
        for host in (before, during):
            host.card(keys)

    assert card_keys("revoke", str(file), old) == [new]
    after = started(running, file)
    assert old not in {key["kid"] for key in after.keys}
    after.card(during.keys)
    during.card(after.keys)
    with pytest.raises(InvalidSignaturesError):
        before.card(after.keys)


@pytest.mark.backend("stack")
@pytest.mark.timeout(400)
@pytest.mark.xfail(bool(NODE), run=False, reason=NODE)
def test_the_javascript_sdk_verifies_them_too(running: ExitStack, file: Path) -> None:
    host = started(running, file)
    for place in PLACES:
        card = host.get(place + CARD).json()
        assert verified_by_javascript(card, host.keys)
        assert not verified_by_javascript({**card, "name": "Evil"}, host.keys)
        assert not verified_by_javascript(card, host.keys[1:])


def verified_by_javascript(card: Mapping[str, Any], keys: list[dict[str, Any]]) -> bool:
    """Does the published verifier find a signature that holds? Raises Unavailable."""
    folder = node_modules(HERE / "sdk_js_10", print)
    done = subprocess.run(  # noqa: S603 - our own script
        ["node", str(HERE / "verify_js_10.mjs")],  # noqa: S607 - whichever is first
        cwd=folder,
        input=json.dumps({"card": card, "keys": keys}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0 or "No valid signatures" in done.stderr, done.stderr
    return done.returncode == 0


def test_a_host_that_was_not_told_its_url_signs_nothing(running: ExitStack, file: Path) -> None:
    host = Told(running.enter_context(web({"A2A_CARD_KEYS": str(file)})).url)
    with pytest.raises(NoSignatureError):
        host.card(host.keys)
