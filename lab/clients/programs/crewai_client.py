"""`python crewai_client.py CARD_URL VERSION ENDPOINT` where crewai[a2a] is installed: what its agents delegate with; see `talk.py`."""

from __future__ import annotations

from typing import Any

from crewai.a2a.config import A2AClientConfig, ClientTransportConfig
from crewai.a2a.utils.delegation import aexecute_a2a_delegation
from talk import Heard, main


class Peer:
    """The call that an agent with `a2a=A2AClientConfig(...)` makes, with the values of that configuration."""

    def __init__(self, address: str, binding: str) -> None:
        self.config = A2AClientConfig(
            endpoint=f"{address}.well-known/agent-card.json",
            transport=ClientTransportConfig(supported=[binding]),
        )

    async def ask(self, text: str, after: Heard | None = None, *, stream: bool = False) -> Heard:
        """Say it, in the task of an earlier answer."""
        config, more = self.config, after.more if after else {}
        found: Any = await aexecute_a2a_delegation(
            endpoint=config.endpoint,
            auth=config.auth,
            timeout=config.timeout,
            task_description=text,
            updates=config.updates,
            transport=config.transport,
            accepted_output_modes=config.accepted_output_modes,
            **more,
        )
        history = found["history"]
        more = {
            "conversation_history": history,
            "context_id": history[-1].context_id,
            "task_id": history[-1].task_id,
        }
        return Heard(found.get("result") or found.get("error", ""), 2, [], more)


if __name__ == "__main__":
    main(Peer)
