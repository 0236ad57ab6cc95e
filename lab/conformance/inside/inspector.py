"""`inspector.py REPORT CARD ...`, in the inspector's folder `backend`: what its page does, and what its validators say of the answers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, ".")

import app

REPORT, *CARDS = sys.argv[1:]
TEXTS = ("echo hello", "chunks 5", "ask Who?", "message hi", "file", "data", "fail", "reject", "")
FILE = {"data": "aGVsbG8=", "mimeType": "text/plain"}
heard: list[tuple[str, dict[str, Any]]] = []


async def listen(event: str, data: dict[str, Any], to: str) -> None:
    """Take what the page would get."""
    heard.append((event, data))


def flaws(wanted: str) -> str:
    """Return what is wrong with the events of this name, or that there are none."""
    told = [data for event, data in heard if event == wanted]
    heard.clear()
    wrong = [
        data
        for data in told
        if data.get("validation_errors") or data.get("error") or data.get("status") == "error"
    ]
    return json.dumps(wrong) if wrong else "" if told else f"no {wanted}"


async def inspect(card: str) -> dict[str, str]:
    """Do what the page does with the address of a card; return what is wrong, by step."""
    page = httpx.AsyncClient(transport=httpx.ASGITransport(app.app), base_url="http://page")
    asked = (await page.post("/agent-card", json={"url": card, "sid": card})).json()
    wrong = asked.get("error") or asked["validation_errors"]
    found = {"card": json.dumps(wrong) if wrong else ""}
    await app.handle_initialize_client(card, {"url": card})
    found["client"] = flaws("client_initialized")
    for text in TEXTS:
        attached = {} if text else {"attachments": [FILE]}
        await app.handle_send_message(card, {"message": text, **attached})
        found[text or "an attachment"] = flaws("agent_response")
    return found


async def inspect_all() -> None:
    """Write the report of all cards."""
    told = {
        f"{card}: {step}": flaw for card in CARDS for step, flaw in (await inspect(card)).items()
    }
    Path(REPORT).write_text(json.dumps(told))


app.sio.emit = listen
asyncio.run(inspect_all())
