"""`python strands_client.py CARD_URL VERSION ENDPOINT` where strands-agents[a2a] is installed: its A2AAgent; see `talk.py`."""

from __future__ import annotations

from strands.agent.a2a_agent import A2AAgent
from talk import Heard, main


class Peer:
    """Its agent that stands for a remote one. It always streams."""

    def __init__(self, address: str, binding: str) -> None:
        self.agent = A2AAgent(endpoint=address)

    async def ask(self, text: str, after: Heard | None = None, *, stream: bool = False) -> Heard:
        """Say it, and take its result."""
        pieces = 0
        async for event in self.agent.stream_async(text):
            pieces += event.get("type") == "a2a_stream"
        content = event["result"].message["content"]
        return Heard("".join(block["text"] for block in content), pieces)


if __name__ == "__main__":
    main(Peer)
