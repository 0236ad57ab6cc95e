"""The words of a pydantic-ai run on their way to the host."""

from __future__ import annotations

from pydantic_ai import (
    AgentStreamEvent,
    FilePart,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from a2a_tasks.agents.content import file
from a2a_tasks.frameworks import output

__all__ = ["ModelOutput"]


class ModelOutput(output.OutputQueue):
    """The emissions of one run, from the events and the answers of its model.

    A replay and a resumed run tell of calls of tools again; the host takes each of them once.
    """

    def read_event(self, event: AgentStreamEvent) -> None:
        """Take the text of an event of the model's stream, or a call of a tool or its result."""
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                apart = self._text and event.previous_part_kind != "text"  # as ModelResponse.text
                self.write(f"\n\n{text}" if apart else text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self.write(text)
            case FunctionToolCallEvent(part=call):
                self.put(output.make_call(call.tool_call_id, call.tool_name, call.args_as_dict()))
            case FunctionToolResultEvent(part=result):
                content = result.model_response_str(wrap_if_error=False)
                failed = result.outcome != "success"
                self.put(output.make_result(result.tool_call_id, content, error=failed))

    async def end_response(self, response: ModelResponse) -> None:
        """End an answer: the host has all of it, streamed or not, when this returns."""
        files = [part.content for part in response.parts if isinstance(part, FilePart)]
        parts = [file(one.data, one.identifier, one.media_type) for one in files]
        await self.end_answer(response.text or "", parts)

    def skip_response(self, response: ModelResponse) -> None:
        """Count the artifacts of an answer that is in the log already."""
        files = sum(isinstance(part, FilePart) for part in response.parts)
        self.skip_answer(response.text or "", files)
