"""`python fasta2a_client.py CARD_URL VERSION ENDPOINT` where fasta2a is installed: its A2AClient; see `talk.py`."""

from __future__ import annotations

from typing import Any

from fasta2a.client import A2AClient
from talk import Heard, main, word


class Peer:
    """Its client."""

    def __init__(self, address: str, binding: str) -> None:
        self.client = A2AClient(address.removesuffix("/"))

    async def ask(self, text: str, after: Heard | None = None, *, stream: bool = False) -> Heard:
        """Say it."""
        message: Any = {"role": "user", "parts": [{"text": text}], "message_id": word()}
        answer = await self.client.send_message(message)
        task = answer["result"]["task"]
        return Heard("".join(p["text"] for each in task["artifacts"] for p in each["parts"]))


if __name__ == "__main__":
    main(Peer)
