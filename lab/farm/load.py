"""Tasks with webhooks, made as clients make them: A2A 1.0, with the message."""

from __future__ import annotations

import asyncio
import base64
import random
import uuid
from typing import Any

import httpx

from lab.farm.lab import FarmLab
from lab.farm.ways import WAYS, Ends, Way

__all__ = ["Clients", "bad_receivers", "good_receivers"]

#: Kinds that make a bad neighbour, without variants: slow, hanging, flooding, refusing.
BAD = (2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 17, 22, 28, 29)
#: What may not be registered, and why: text of the URL.
REFUSED = (
    "http://127.0.0.1:{canary}/",
    "http://localhost:{canary}/",
    "http://[::1]:{canary}/",
    "http://0.0.0.0:{canary}/",
    "http://2130706433:{canary}/",
    "http://0x7f.1:{canary}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://user:password@receiver.farm.test:{http}/",
    "http://receiver.farm.test:5432/",
    "file:///etc/passwd",
    "gopher://receiver.farm.test/",
    "http://machine.internal/",
)


class Clients:
    """Clients of all web processes. Close them."""

    def __init__(self, lab: FarmLab, rng: random.Random) -> None:
        self.lab, self.rng = lab, rng
        self._http = httpx.AsyncClient(trust_env=False, timeout=30)
        self._count = 0

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def task(
        self,
        url: str,
        ends: Ends,
        *,
        agent: str = "farm-tell",
        text: str = "9 0.05",
        way: int = 0,
        old: bool = False,
    ) -> str:
        """A task with a webhook there, in 1.0 or in 0.3, whose webhooks are told of ends; returns the tag of the webhook."""
        tag = f"t-{self._count}-{self.rng.getrandbits(40):010x}"
        self._count += 1
        config = {"id": "c", "url": f"{url}?tag={tag}&agent={agent}", "token": self._token(tag)}
        if old:
            body = await self._post(agent, "0.3", old_message(text, config), tag)
        else:
            body = await self._post(agent, "1.0/message:send", message(text, config), tag)
        task = body["result" if old else "task"]["id"]
        told = {"tag": tag, "task": task, "url": config["url"], "token": config["token"]}
        self.lab.tell(what="registered", ends=ends, way=way, distinct=True, **told)
        return tag

    async def tasks(self, url: str, ends: Ends, count: int, **more: Any) -> list[str]:
        """Several, one after the other."""
        return [await self.task(url, ends, **more) for _ in range(count)]

    async def refused(self) -> int:
        """Try to register what may not be; returns how many there were. What was let in is told."""
        for pattern in REFUSED:
            url = pattern.format(**self.lab.ports)
            config = {"id": "c", "url": url, "token": "x"}
            answer = await self._send("farm-tell", "1.0/message:send", message("1", config), url)
            what = "refused-url" if answer.status_code == 400 else "registered-anyway"
            self.lab.tell(what=what, url=url, status=answer.status_code)
        return len(REFUSED)

    async def probe(self, agent: str = "lab-short") -> float:
        """Seconds that a task without webhooks takes, as its client sees it."""
        begun = asyncio.get_running_loop().time()
        await self._post(agent, "1.0/message:send", {"message": message("1")["message"]}, "")
        return asyncio.get_running_loop().time() - begun

    def _token(self, tag: str) -> str:
        """Every other webhook has a secret of its own, the others a token."""
        if self._count % 2:
            return f"canary-{tag}"
        return "whsec_" + base64.b64encode(self.rng.randbytes(32)).decode()

    async def _post(self, agent: str, path: str, body: Any, key: str) -> dict[str, Any]:
        while True:
            try:
                answer = await self._send(agent, path, body, key)
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
                continue
            if answer.status_code < 500:
                found: dict[str, Any] = answer.raise_for_status().json()
                return found
            await asyncio.sleep(0.2)

    async def _send(self, agent: str, path: str, body: Any, key: str) -> httpx.Response:
        url = f"{self.rng.choice(list(self.lab.urls.values()))}/agents/{agent}/a2a/{path}"
        headers = {"Idempotency-Key": key[:200]} if key else {}
        return await self._http.post(url, json=body, headers=headers)


def message(text: str, config: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is sent."""
    said = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]}
    if config is None:
        return {"message": said}
    return {
        "message": said,
        "configuration": {"returnImmediately": True, "taskPushNotificationConfig": config},
    }


def old_message(text: str, config: dict[str, Any]) -> dict[str, Any]:
    """The same in 0.3, over JSON-RPC."""
    said = {"kind": "message", "messageId": uuid.uuid4().hex, "role": "user"}
    parts = [{"kind": "text", "text": text}]
    wanted = {"blocking": False, "pushNotificationConfig": config}
    params = {"message": {**said, "parts": parts}, "configuration": wanted}
    return {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}


def good_receivers(lab: FarmLab, count: int) -> list[str]:
    """URLs of receivers as they should be."""
    return [f"http://receiver.farm.test:{lab.ports['http']}/e/{n}" for n in range(count)]


def bad_receivers(lab: FarmLab, count: int) -> list[tuple[Way, str]]:
    """URLs of bad neighbours, of each kind as many."""
    ways = [WAYS[BAD[n % len(BAD)]] for n in range(count)]
    return [(way, f"{way.urls(lab.ports)[0]}/n{n}") for n, way in enumerate(ways)]
