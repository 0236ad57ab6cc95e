"""The words of a graph on their way to the host: coalesced, and in the log before the checkpoint of the node that said them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, LLMResult
from langgraph.constants import TAG_NOSTREAM

from a2a_frameworks.langgraph.messages import find_messages, make_json, mend_messages
from a2a_frameworks.shared.model_call import ModelSilent
from a2a_frameworks.shared.output import (
    CallNumbers,
    EmissionQueue,
    make_call,
    make_result,
    number_artifact,
)
from a2a_tasks.agents import Part
from a2a_tasks.agents.emission import Chunk, Emission
from a2a_tasks.agents.later import is_running_here

__all__ = ["GraphOutput"]

#: Not one of the host's own loggers, so that the line is in the run's log.
logger = logging.getLogger("turn.usage")
NO_USAGE = (
    "An answer of a model came without %s: what is missing counts as 0, also for budgets. "
    "ChatOpenAI asks for the usage of streams if it is made with stream_usage=True."
)


@dataclass(eq=False)
class GraphAnswer:
    """A text of a model or a node on its way; it becomes an artifact."""

    #: The node: `name:task`, after those that it is nested in.
    node: str
    #: The name of the model, if its answer does not tell.
    model: str = "unknown"
    shown: bool = True
    #: The number of the artifact; 0 = there was no text yet.
    number: int = 0
    text: str = ""
    #: The text that was not sent yet.
    buffer: str = ""
    begun: bool = False
    over: bool = False
    #: The timer for a silent model; None = it is a node.
    silence: asyncio.TimerHandle | None = None
    #: Time of the model's last sign of life, by the clock of the event loop.
    heard: float = 0.0


class GraphOutput(EmissionQueue, BaseCallbackHandler):
    """The emissions of one run, in order. Each text of a model or a node is an artifact of its own.

    The callbacks come from the models and nodes, in any thread. Numbers of artifacts are kept with the checkpoint of their
    node. A node that is taken again gets the numbers that were not kept, and its artifacts begin anew.
    """

    run_inline = True
    raise_error = True

    def __init__(
        self,
        artifacts: int,
        nodes: Sequence[str],
        model_seconds: float,
        report: Callable[..., Any] = lambda **_: None,
    ) -> None:
        """Make a queue; `artifacts` is the number of artifacts that the task had before the turn.

        `report` is called with the usage of each answer of a model, as `turn.usage` is.
        """
        self._loop = asyncio.get_running_loop()
        super().__init__()
        self._before, self._nodes = artifacts, frozenset(nodes)
        self._numbers: set[int] = set()
        self._answers: dict[UUID, GraphAnswer] = {}
        #: Answers whose node has no checkpoint yet.
        self._over: list[GraphAnswer] = []
        #: Calls of tools in answers whose node has no checkpoint yet, each with the node.
        self._asked: list[tuple[str, ToolCall]] = []
        self._calls = CallNumbers()
        #: True if an answer without usage was told of.
        self._lacks_usage = False
        #: Ids of messages that were given to a node, and of those that were sent to the client.
        self._given: set[str] = set()
        self._said: set[str] = set()
        self._report = report
        self._model_seconds, self._limit = model_seconds, asyncio.timeout(None)
        #: True if the run has ended; a model may still be at work in a thread.
        self._is_over = False
        #: The last error of a model.
        self._fault: BaseException | None = None

    @asynccontextmanager
    async def limit_silence(self) -> AsyncIterator[None]:
        """Stop the block when a model is silent for too long. Raises ModelSilent."""
        try:
            async with self._limit:
                yield
        except TimeoutError as fault:
            if not self._limit.expired():
                raise
            raise ModelSilent(f"a model was silent for {self._model_seconds} s") from fault
        finally:
            self._is_over = True

    def came_from_model(self, fault: BaseException) -> bool:
        """Return whether a model raised the error."""
        return fault is self._fault

    def put(self, said: Emission) -> None:
        """Send an emission, after the text before it."""
        self.flush()
        super().put(said)

    def number_call(self, id_: str) -> int:
        """Return the number of a call under way: earlier ones may be in checkpoints."""
        return self._calls.find_open(_name(id_))

    # --- for the checkpointer ---------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until the host has all that was said."""
        self.flush()
        await self._queue.join()

    def take_numbers(self, belongs: Callable[[str], bool]) -> list[int]:
        """Return the numbers of the artifacts of nodes that get a checkpoint now."""
        found = [answer for answer in self._over if belongs(answer.node)]
        self._over = [answer for answer in self._over if answer not in found]
        return [answer.number for answer in found]

    def tell_calls(self, belongs: Callable[[str], bool]) -> None:
        """Report the calls in answers of nodes that have a checkpoint now: calls of a lost answer are never made."""
        asked, self._asked = self._asked, []
        for node, call in asked:
            if belongs(node):
                self._tell_call(call)
            else:
                self._asked.append((node, call))

    def skip_numbers(self, numbers: Sequence[int]) -> None:
        """Note the numbers of artifacts that are in the log already."""
        self._numbers.update(numbers)

    def count_calls(self, messages: Sequence[BaseMessage]) -> None:
        """Count the calls in messages that earlier attempts of the turn have added."""
        for message in messages:
            for call in message.tool_calls if isinstance(message, AIMessage) else ():
                self._calls.begin(_name(call["id"]))
            if isinstance(message, ToolMessage):
                self._calls.end(_name(message.tool_call_id))

    # --- for models and nodes, in any thread ------------------------------------------------

    def on_chat_model_start(self, *given: Any, run_id: UUID, **about: Any) -> None:
        self._call(self._begin_model, run_id, about.get("tags") or (), about.get("metadata") or {})

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **about: Any) -> None:
        if isinstance(chunk := about.get("chunk"), ChatGenerationChunk):
            token = chunk.message.text
        self._call(self._write, run_id, str(token))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **about: Any) -> None:
        mend_messages([getattr(one, "message", None) for one in response.generations[0][:1]])
        self._call(self._end, run_id, response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        self._call(self._fail, run_id, error)

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:
        metadata = about.get("metadata")
        if metadata and about.get("name") == metadata.get("langgraph_node"):
            given = [message.id for message in find_messages(inputs) if message.id]
            self._call(self._given.update, given)
            self._call(self._begin, run_id, (), metadata)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **about: Any) -> None:
        mend_messages(outputs)
        self._call(self._end_node, run_id, outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        self._call(self._drop, run_id)

    def on_tool_start(self, serialized: dict[str, Any], *given: Any, **about: Any) -> None:
        if (id_ := about.get("tool_call_id")) is not None:  # a model asked for it
            name, arguments = serialized.get("name", ""), about.get("inputs") or {}
            self._call(self._tell_unless_open, ToolCall(name=name, args=arguments, id=id_))

    def on_tool_end(self, output: Any, **about: Any) -> None:
        if isinstance(output, ToolMessage):
            mend_messages(output)
            self._call(self._tell_result, output)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        if is_running_here(self._loop):
            function(*arguments)
        else:
            self._loop.call_soon_threadsafe(function, *arguments)

    # --- in the event loop ------------------------------------------------------------------

    def _begin_model(self, run_id: UUID, *about: Any) -> None:
        self._begin(run_id, *about)
        answer = self._answers[run_id]
        answer.heard = self._loop.time()
        self._watch(answer)

    def _watch(self, answer: GraphAnswer) -> None:
        """Stop the run if the model has been silent for too long, else look again later."""
        if self._is_over or self._limit.when() is not None:
            return
        ends = answer.heard + self._model_seconds
        if ends > self._loop.time():
            answer.silence = self._loop.call_at(ends, self._watch, answer)
        else:
            self._limit.reschedule(ends)

    def _begin(self, run_id: UUID, tags: Sequence[str], metadata: dict[str, Any]) -> None:
        node = str(metadata.get("langgraph_checkpoint_ns") or metadata.get("langgraph_node", ""))
        names = {segment.partition(":")[0] for segment in node.split("|")}
        shown = TAG_NOSTREAM not in tags and (not self._nodes or bool(names & self._nodes))
        self._answers[run_id] = GraphAnswer(node, metadata.get("ls_model_name") or "unknown", shown)

    def _write(self, run_id: UUID, text: str) -> None:
        answer = self._answers.get(run_id)
        if answer is None:
            return
        answer.heard = self._loop.time()
        if not answer.shown or not text:
            return
        first = not answer.text
        answer.text += text
        answer.buffer += text
        if first:
            self.flush()  # the first word does not wait
        else:
            self._flush_soon()

    def _end(self, run_id: UUID, response: LLMResult) -> None:
        answer = self._pop(run_id) or GraphAnswer("", shown=False)
        for generation in response.generations[0][:1] if response.generations else ():
            message = getattr(generation, "message", None)
            said = message.text if message is not None else generation.text
            self._report_usage(answer, message)
            if message is not None and message.id and said:
                self._said.add(message.id)
            self._say_whole(answer, str(said))

    def _end_node(self, run_id: UUID, outputs: Any) -> None:
        """Send the messages that a node has made by itself, and report calls of tools and their results."""
        if (node := self._pop(run_id)) is None:
            return
        messages = [one for one in find_messages(outputs) if one.id not in self._given]
        ended = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
        for message in messages:
            message.id = message.id or str(uuid4())
            if isinstance(message, ToolMessage):
                self._tell_result(message)
            if not isinstance(message, AIMessage):
                continue
            for call in message.tool_calls:
                if call["id"] in ended:
                    self._tell_if_new(call)
                else:  # another node makes it
                    self._asked.append((node.node, call))
            if message.id not in self._said:
                self._said.add(message.id)
                self._say_once(node, str(message.text))

    def _tell_call(self, call: ToolCall) -> None:
        """Report a call."""
        id_ = _name(call["id"])
        number = self._calls.begin(id_)
        self.put(make_call(id_, call["name"], make_json(call["args"]), number))

    def _tell_unless_open(self, call: ToolCall) -> None:
        """Report a call that begins, unless it was reported with the answer of the model."""
        if not self._calls.find_open(_name(call["id"])):
            self._tell_call(call)

    def _tell_if_new(self, call: ToolCall) -> None:
        """Report a call that its node has made, unless its tool has said so."""
        if not self._calls.count(_name(call["id"])):
            self._tell_call(call)

    def _tell_result(self, message: ToolMessage) -> None:
        id_, failed = _name(message.tool_call_id), message.status == "error"
        content = make_json(message.content)
        self.put(make_result(id_, content, error=failed, number=self._calls.end(id_)))

    def _say_once(self, node: GraphAnswer, said: str) -> None:
        """Send a text of a node, unless it repeats the text of a model within the node."""
        if not any(one.node == node.node and one.text == said for one in self._over):
            self._say_whole(GraphAnswer(node.node, shown=node.shown), said)

    def _say_whole(self, answer: GraphAnswer, said: str) -> None:
        if not answer.shown or not (said or answer.text):
            return
        # It was not streamed, or a second try of the request streamed another text.
        if said != answer.text:
            answer.text = answer.buffer = said
            answer.begun = False
        answer.over = True
        self._send(answer)
        self._over.append(answer)

    def _drop(self, run_id: UUID) -> None:
        """Forget an answer that was cut off: the next one begins its artifact anew."""
        answer = self._pop(run_id)
        if answer is not None and answer.number:
            self._numbers.discard(answer.number)

    def _fail(self, run_id: UUID, fault: BaseException) -> None:
        self._fault = fault
        self._drop(run_id)

    def _pop(self, run_id: UUID) -> GraphAnswer | None:
        answer = self._answers.pop(run_id, None)
        if answer is not None and answer.silence is not None:
            answer.silence.cancel()
        return answer

    def _report_usage(self, answer: GraphAnswer, message: BaseMessage | None) -> None:
        used = getattr(message, "usage_metadata", None) or {}
        about = getattr(message, "response_metadata", {})
        details = used.get("input_token_details", {})
        if not used.get("input_tokens") and not self._lacks_usage:
            self._lacks_usage = True
            logger.warning(NO_USAGE, "the tokens of its input" if used else "usage")
        self._report(
            model=about.get("model_name") or answer.model or "unknown",
            input_tokens=used.get("input_tokens", 0),
            output_tokens=used.get("output_tokens", 0),
            cached_tokens=details.get("cache_read") or 0,
            cache_write_tokens=details.get("cache_creation") or 0,
        )

    def flush(self) -> None:
        """Send the text that has gathered."""
        super().flush()
        for answer in self._answers.values():
            if answer.buffer:
                self._send(answer)

    def _send(self, answer: GraphAnswer) -> None:
        """Send what is left of an answer."""
        if not answer.number:
            answer.number = 1
            while answer.number in self._numbers:
                answer.number += 1
            self._numbers.add(answer.number)
        if answer.buffer:
            name = number_artifact(self._before + answer.number)
            parts = (Part(text=answer.buffer),)
            self._queue.put_nowait(
                Chunk(artifact_id=name, parts=parts, append=answer.begun, last=answer.over)
            )
        answer.begun, answer.buffer = True, ""


def _name(id_: str | None) -> str:
    """Return the id of a call; some servers of models leave it empty."""
    return id_ or "call"
