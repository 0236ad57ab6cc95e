"""An issuer with whom people sign in: the code flow of OpenID Connect, on a real socket."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.access.issuer import Issuer
from tests.support.push import receivers

__all__ = ["CLIENT", "SECRET", "Login", "logging_in"]

CLIENT, SECRET = "a2a-host", "client-secret-91bc"


class Login(Issuer):
    """Signs in whoever stands in `person`."""

    def __init__(self) -> None:
        super().__init__()
        self.person: dict[str, Any] = {"sub": "alice", "preferred_username": "alice"}
        self._codes: dict[str, dict[str, str]] = {}

    def document(self, path: str) -> Any:
        ends = ("authorization", "token", "userinfo")
        found = super().document(path)
        if path == "/keys":
            return found
        return {**found, **{f"{end}_endpoint": f"{self.url}/{end}" for end in ends}}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen = await receivers.request(reader)
            place = urlsplit(seen.path)
            self.asked.append(place.path)
            if place.path == "/authorization":
                writer.write(self._sent_back(dict(_pairs(place.query))))
            elif place.path == "/token":
                writer.write(self._token(dict(_pairs(seen.body.decode()))))
            else:
                body = json.dumps(self.document(place.path)).encode()
                writer.write(
                    receivers.answer("200 OK", "Content-Type: application/json", body=body)
                )
            await writer.drain()

    def _sent_back(self, asked: dict[str, str]) -> bytes:
        """The person has signed in here: back to the host, with a code."""
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        code = secrets.token_urlsafe(8)
        self._codes[code] = asked
        query = urlencode({"code": code, "state": asked["state"]})
        return receivers.answer("302 Found", f"Location: {asked['redirect_uri']}?{query}")

    def _token(self, said: dict[str, str]) -> bytes:
        """The host redeems the code, once, with what only it knows."""
        asked = self._codes.pop(said["code"], None)
        digest = hashlib.sha256(said.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or challenge != asked["code_challenge"] or said["client_secret"] != SECRET:
            return receivers.answer("400 Bad Request", body=b'{"error":"invalid_grant"}')
        token = self.token(aud=CLIENT, **self.person)
        body = json.dumps({"access_token": "x", "token_type": "Bearer", "id_token": token})
        return receivers.answer("200 OK", "Content-Type: application/json", body=body.encode())


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, values[0]) for name, values in parse_qs(text).items()]


@asynccontextmanager
async def logging_in() -> AsyncIterator[Login]:
    """The issuer, for a while."""
    issuer = Login()
    async with receivers.serving(issuer.serve) as port:
        issuer.url = f"http://127.0.0.1:{port}"
        yield issuer
