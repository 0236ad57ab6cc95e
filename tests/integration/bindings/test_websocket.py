"""WebSocket handshakes: refused, without a word in the log."""

from __future__ import annotations

from typing import Any

from a2a_project.asgi import application


async def test_a_websocket_handshake_is_refused() -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application({"type": "websocket", "path": "/agents/demo/", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]
