"""The commands: `card_keys` makes, rotates and revokes, and shows no key; `verify_card` says who vouches for a card."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from pytest_django import Settings

from a2a_tasks.management.commands import card_keys
from a2a_tasks.signatures.keys import read_keys
from tests.support.signatures.given import CARD, EDWARDS, NIST, OTHER, public, sign

CARD_PATH, JWKS_PATH = "/.well-known/agent-card.json", "/.well-known/jwks.json"


def said(*arguments: str, **options: Any) -> list[str]:
    """What a command prints."""
    out = io.StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue().splitlines()


def secrets(path: Path) -> list[str]:
    """The private halves in a file."""
    return [str(key.as_dict(private=True)["d"]) for key in read_keys(path.read_text())]


@pytest.mark.django_db  # making a file leaves an entry in the audit log
class TestCardKeys:
    @pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
    def test_makes_a_file_for_its_owner_alone(self, tmp_path: Path, algorithm: str) -> None:
        path = tmp_path / "card.keys"
        shown, afterwards = said("card_keys", "make", str(path), "--algorithm", algorithm)
        (key,) = read_keys(path.read_text())
        assert shown == f"{key.kid} {algorithm} signs"
        assert "restart" in afterwards
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert secrets(path)[0] not in shown
        assert list(tmp_path.iterdir()) == [path]

    def test_never_writes_over_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "card.keys"
        said("card_keys", "make", str(path))
        before = path.read_text()
        with pytest.raises(CommandError, match="exists"):
            said("card_keys", "make", str(path))
        assert path.read_text() == before

    def test_rotates_with_an_overlap(self, tmp_path: Path) -> None:
        path = tmp_path / "card.keys"
        said("card_keys", "make", str(path))
        old = secrets(path)
        new, former, _ = said("card_keys", "rotate", str(path), "--days", "7")
        assert new.endswith("ES256 signs")
        assert "signs, until 20" in former
        assert secrets(path)[1:] == old
        gone, *_ = said("card_keys", "rotate", str(path), "--days", "0")
        assert gone.endswith("signs")
        assert len(secrets(path)) == 3
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        said("card_keys", "rotate", str(path))
        assert len(secrets(path)) == 2  # those that had expired are gone

    def test_revokes(self, tmp_path: Path) -> None:
        path = tmp_path / "card.keys"
        said("card_keys", "make", str(path))
        new, old = (line.split()[0] for line in said("card_keys", "rotate", str(path))[:2])
        said("card_keys", "revoke", str(path), old)
        assert [key.kid for key in read_keys(path.read_text())] == [new]
        for kid in (old, new):
            with pytest.raises(CommandError):
                said("card_keys", "revoke", str(path), kid)

    def test_revokes_one_whose_name_begins_like_an_option(self, tmp_path: Path) -> None:
        path = tmp_path / "card.keys"
        said("card_keys", "make", str(path))
        (held,) = json.loads(path.read_text())["keys"]
        other = {**json.loads(path.read_text())["keys"][0], "kid": "-x" + held["kid"][2:]}
        path.write_text(json.dumps({"keys": [held, other]}))
        said("card_keys", "revoke", str(path), other["kid"])
        assert [key.kid for key in read_keys(path.read_text())] == [held["kid"]]
        for kids in ((), ("a", "b")):
            with pytest.raises(CommandError, match="name one key"):
                said("card_keys", "revoke", str(path), *kids)

    @pytest.mark.parametrize("days", ["-1", "nan", "inf"])
    def test_wants_an_overlap_that_is_one(self, tmp_path: Path, days: str) -> None:
        path = tmp_path / "card.keys"
        said("card_keys", "make", str(path))
        with pytest.raises(CommandError, match="days"):
            said("card_keys", "rotate", str(path), f"--days={days}")

    def test_mends_a_host_whose_keys_are_wrong(self, settings: Settings, tmp_path: Path) -> None:
        settings.A2A_PUBLIC_URL, settings.A2A_CARD_KEYS = "https://h", str(tmp_path / "card.keys")
        with pytest.raises(SystemCheckError, match="E017"):
            said("check")
        card_keys.Command().run_from_argv(
            ["manage.py", "card_keys", "make", settings.A2A_CARD_KEYS]
        )
        said("check")

    def test_tells_what_is_wrong_with_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "card.keys"
        with pytest.raises(CommandError, match="No such file"):
            said("card_keys", "rotate", str(path))
        with pytest.raises(CommandError, match="No such file"):
            said("card_keys", "make", str(tmp_path / "no" / "card.keys"))
        for text in ("hush", '{"keys": [{"kty": "hush"}]}'):
            path.write_text(text)
            with pytest.raises(CommandError) as caught:
                said("card_keys", "rotate", str(path))
            assert "hush" not in str(caught.value)
            assert path.read_text() == text

    def test_shows_the_keys_of_the_host(self, settings: Settings, tmp_path: Path) -> None:
        settings.A2A_PUBLIC_URL = ""
        with pytest.raises(CommandError, match="A2A_PUBLIC_URL"):
            said("card_keys")
        settings.A2A_PUBLIC_URL = "https://agents.example.com"
        rows: list[dict[str, Any]] = [
            {**EDWARDS.as_dict(private=True), "nbf": 9_000_000_000},
            NIST.as_dict(private=True),
            *public(OTHER),
            {**OTHER.as_dict(private=True), "kid": "old", "exp": 1_000_000_000},
        ]
        settings.A2A_CARD_KEYS = json.dumps({"keys": rows})
        states = [line.partition(" ")[2] for line in said("card_keys")]
        assert states[0].startswith("EdDSA will sign from 2255-")
        assert states[1:] == ["ES256 signs", "ES256 verifies only", "ES256 has expired"]
        settings.A2A_CARD_KEYS = "hush"
        with pytest.raises(CommandError, match="A2A_CARD_KEYS"):
            said("card_keys")


@contextmanager
def serving(documents: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """A site with these documents; and the paths it is asked for."""
    asked: list[str] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            found = documents.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            if found is not None:
                self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its own name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class TestVerifyCard:
    @pytest.fixture
    def files(self, tmp_path: Path) -> tuple[str, str]:
        """A signed card and the keys to trust."""
        card, keys = tmp_path / "card.json", tmp_path / "jwks.json"
        card.write_text(json.dumps({**sign(CARD, NIST), "url": "https://evil"}))
        keys.write_text(json.dumps({"keys": [3, *public(NIST)]}))
        return str(card), str(keys)

    def test_says_who_vouches_for_a_file_and_what_for(self, files: tuple[str, str]) -> None:
        card, keys = files
        assert said("verify_card", card, keys=keys) == [
            f"verified: key {NIST.kid} (ES256)",
            "not covered by the signature: url",
        ]

    def test_wants_to_know_whom_to_trust(self, files: tuple[str, str]) -> None:
        with pytest.raises(CommandError, match="--keys"):
            said("verify_card", files[0])

    def test_refuses_what_does_not_hold(self, files: tuple[str, str], tmp_path: Path) -> None:
        card, keys = files
        with pytest.raises(CommandError, match="not allowed"):
            said("verify_card", card, keys=keys, algorithm=["EdDSA"])
        Path(card).write_text(json.dumps({**sign(CARD, NIST), "name": "Evil"}))
        with pytest.raises(CommandError, match="not match the card"):
            said("verify_card", card, keys=keys)
        Path(keys).write_text(json.dumps({"keys": public(OTHER)}))
        with pytest.raises(CommandError, match="is known"):
            said("verify_card", card, keys=keys)
        Path(keys).write_text(json.dumps({"keys": "none"}))
        with pytest.raises(CommandError, match="is known"):
            said("verify_card", card, keys=keys)

    def test_takes_the_loose_form_only_if_asked_to(self, files: tuple[str, str]) -> None:
        card, keys = files
        loosely = {**CARD, "signatures": sign(CARD, NIST)["signatures"][1:]}
        Path(card).write_text(json.dumps(loosely))
        with pytest.raises(CommandError, match="not match the card"):
            said("verify_card", card, keys=keys)
        assert "empty members left out" in said("verify_card", card, keys=keys, loose=True)[0]

    @pytest.mark.parametrize("text", ["nonsense", "[]", '{"a":1,"a":2}'])
    def test_tells_what_is_not_json(self, files: tuple[str, str], text: str) -> None:
        for path in files:
            before = Path(path).read_text()
            Path(path).write_text(text)
            with pytest.raises(CommandError, match="it is not"):
                said("verify_card", files[0], keys=files[1])
            Path(path).write_text(before)
        with pytest.raises(CommandError, match="No such file"):
            said("verify_card", "/nowhere.json")

    @pytest.mark.parametrize("where", ["", "/", "/agents/demo", CARD_PATH])
    def test_finds_card_and_keys_of_a_host(self, where: str) -> None:
        below = "" if where == CARD_PATH else where.rstrip("/")
        documents = {f"{below}{CARD_PATH}": sign(CARD, NIST), JWKS_PATH: {"keys": public(NIST)}}
        with serving(documents) as (site, asked):
            (line,) = said("verify_card", site + where)
        assert line == f"verified: key {NIST.kid} (ES256)"
        assert asked == [f"{below}{CARD_PATH}", JWKS_PATH]

    def test_finds_keys_where_the_signature_says_on_the_same_host(self) -> None:
        documents: dict[str, Any] = {"/base/keys.json": {"keys": public(NIST)}}
        with serving(documents) as (site, _):
            documents[CARD_PATH] = sign(CARD, NIST, jku=f"{site}/base/keys.json")
            assert said("verify_card", site)[0].startswith("verified")

    def test_asks_no_other_host_for_keys(self) -> None:
        """Whoever changes a card can sign it anew and say where his keys are."""
        with serving({"/keys.json": {"keys": public(OTHER)}}) as (evil, asked):
            forged = sign({**CARD, "name": "Evil"}, OTHER, jku=f"{evil}/keys.json")
            with (
                serving({CARD_PATH: forged, JWKS_PATH: {"keys": public(NIST)}}) as (site, _),
                pytest.raises(CommandError, match="is known"),
            ):
                said("verify_card", site)
        assert asked == []

    def test_trusts_only_the_keys_it_is_given(self, files: tuple[str, str]) -> None:
        documents = {CARD_PATH: sign(CARD, OTHER), JWKS_PATH: {"keys": public(OTHER)}}
        with serving(documents) as (site, asked):
            with pytest.raises(CommandError, match="is known"):
                said("verify_card", site, keys=files[1])
            assert asked == [CARD_PATH]
            assert said("verify_card", site, keys=site + JWKS_PATH)

    @pytest.mark.parametrize(
        "url", ["http://", "http://[", "http://127.0.0.1:1", "http://127.0.0.1:x/"]
    )
    def test_tells_what_it_cannot_reach(self, url: str) -> None:
        with pytest.raises(CommandError):
            said("verify_card", url)

    def test_tells_what_is_not_there(self) -> None:
        with serving({}) as (site, _), pytest.raises(CommandError, match="404"):
            said("verify_card", site)
        with (
            serving({CARD_PATH: b"x" * 2_000_000}) as (site, _),
            pytest.raises(CommandError, match="not whole"),
        ):
            said("verify_card", site)
