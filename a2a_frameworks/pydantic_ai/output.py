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

from a2a_frameworks.shared import output

__all__ = ["ModelOutput"]


class ModelOutput(output.OutputQueue):
    """The emissions of one run, from the events and the answers of its model.

    A replay and a resumed run tell of calls of tools again; the host takes each of them once.
    """

    def __init__(self, artifacts: int) -> None:
        """Make a queue; `artifacts` is the number of artifacts that the task had before the turn."""
        super().__init__(artifacts)
        self._calls = output.CallNumbers()

    def read_event(self, event: AgentStreamEvent) -> None:
        """Take the text of an event of the model's stream, or a call of a tool or its result."""
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                apart = self._text and event.previous_part_kind != "text"  # as ModelResponse.text
                self.write(f"\n\n{text}" if apart else text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self.write(text)
            case FunctionToolCallEvent(part=call):
                id_, number = call.tool_call_id, self._calls.begin(call.tool_call_id)
                arguments = call.args_as_dict()
                self.put(output.make_call(id_, call.tool_name, arguments, number))
            case FunctionToolResultEvent(part=result):
                content = result.model_response_str(wrap_if_error=False)
                failed = result.outcome != "success"
                id_, number = result.tool_call_id, self._calls.end(result.tool_call_id)
                self.put(output.make_result(id_, content, error=failed, number=number))

    def skip_response(self, response: ModelResponse) -> None:
        """Count the artifacts of an answer that is in the log already."""
        files = sum(isinstance(part, FilePart) for part in response.parts)
        self.skip_answer(response.text or "", files)
