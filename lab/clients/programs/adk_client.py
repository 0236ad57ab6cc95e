"""`python adk_client.py CARD_URL VERSION ENDPOINT` where google-adk[a2a] is installed: its RemoteA2aAgent; see `talk.py`."""

from __future__ import annotations

from typing import Any

from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from talk import Heard, main

USER = "someone"


class Peer:
    """A runner whose only agent is the remote one."""

    def __init__(self, address: str, binding: str) -> None:
        card = f"{address}.well-known/agent-card.json"
        agent = RemoteA2aAgent(name="demo", agent_card=card)
        self.runner = InMemoryRunner(agent=agent, app_name="campaign")

    async def ask(self, text: str, after: Heard | None = None, *, stream: bool = False) -> Heard:
        """Say it, or answer the call of a function that stands for a question."""
        part = types.Part(text=text)
        if after is None:
            made = await self.runner.session_service.create_session(
                app_name="campaign", user_id=USER
            )
            session = made.id
        else:
            session, call = after.more
            response = types.FunctionResponse(id=call.id, name=call.name, response={"result": text})
            part = types.Part(function_response=response)
        message = types.Content(role="user", parts=[part])
        heard, call = Heard("", 0), None
        async for event in self.runner.run_async(
            user_id=USER, session_id=session, new_message=message
        ):
            if event.error_message:
                raise RuntimeError(event.error_message)
            for found in event.content.parts if event.content else []:
                if found.thought:  # what the agent says on its way
                    continue
                call = found.function_call or call
                self.hear(heard, found)
        heard.more = session, call
        return heard

    @staticmethod
    def hear(heard: Heard, part: Any) -> None:
        """Take a part of an event."""
        if part.text:
            heard.text, heard.pieces = heard.text + part.text, heard.pieces + 1
        if part.function_call:
            heard.text += str(part.function_call.args["input_required"])
        if part.inline_data:
            heard.files.append(part.inline_data.data)
        if part.file_data:
            heard.files.append(part.file_data.file_uri)


if __name__ == "__main__":
    main(Peer)
