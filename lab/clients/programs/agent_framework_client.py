"""`python agent_framework_client.py CARD_URL VERSION ENDPOINT` where agent-framework-a2a is installed: its A2AAgent; see `talk.py`."""

from __future__ import annotations

from base64 import b64decode

import httpx
from a2a.client import A2ACardResolver
from agent_framework.a2a import A2AAgent
from talk import Heard, main


def bytes_or_url(uri: str) -> bytes | str:
    """The bytes of a data URI, and other URIs as they are."""
    return b64decode(uri.partition(",")[2]) if uri.startswith("data:") else uri


class Peer:
    """Its agent that stands for a remote one, made of the card."""

    def __init__(self, address: str, binding: str) -> None:
        self.address, self.binding = address, binding

    async def agent(self) -> A2AAgent:
        """The agent."""
        async with httpx.AsyncClient() as http:
            card = await A2ACardResolver(http, self.address).get_agent_card()
        return A2AAgent(agent_card=card, supported_protocol_bindings=[self.binding])

    async def ask(self, text: str, after: Heard | None = None, *, stream: bool = False) -> Heard:
        """Say it, in the session of an earlier answer."""
        agent = await self.agent()
        session = after.more if after else agent.create_session()
        async with agent:
            if stream:
                answer = agent.run(text, stream=True, session=session)
                pieces = len([update async for update in answer])
                whole = await answer.get_final_response()
            else:
                pieces, whole = 1, await agent.run(text, session=session)
        contents = [each for message in whole.messages for each in message.contents]
        files = [bytes_or_url(each.uri) for each in contents if each.uri]
        return Heard(whole.text, pieces, files, session)


if __name__ == "__main__":
    main(Peer)
