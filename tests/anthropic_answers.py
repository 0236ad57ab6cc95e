"""The shape of answers of `tests/model_server.py` in Anthropic's protocol: `/v1/messages`, whole and as events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from tests.model_answers import Calls, Entries, event_of, text_of

__all__ = ["MessagesAnswer"]


class MessagesAnswer:
    """An answer of `/v1/messages`. Its input tokens are those beside the cache, as Anthropic counts them."""

    END = b""

    def __init__(self, request: Any, exchange: Any, calls: Calls) -> None:
        self._model, self._exchange, self._calls = request.get("model", ""), exchange, calls

    @staticmethod
    def read(request: Any) -> Entries:
        """The conversation, as pairs of a role (user, model, tool, system) and a text."""
        entries: Entries = [("system", text_of(request["system"]))] if "system" in request else []
        for message in request["messages"]:
            if message["role"] == "assistant":
                entries.append(("model", ""))
                continue
            blocks = message["content"]
            if isinstance(blocks, str):
                blocks = [{"type": "text", "text": blocks}]
            results = [block for block in blocks if block["type"] == "tool_result"]
            entries += [("tool", text_of(block.get("content"))) for block in results]
            if others := [block for block in blocks if block["type"] != "tool_result"]:
                entries.append(("user", text_of(others)))
        return entries

    @staticmethod
    def read_calls(request: Any) -> list[str]:
        """The ids of the calls in the conversation."""
        contents = [message["content"] for message in request["messages"]]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        return [block["id"] for block in blocks if block["type"] == "tool_use"]

    @property
    def _usage(self) -> dict[str, int]:
        read, written = self._exchange.cached_tokens, self._exchange.written_tokens
        return {
            "input_tokens": self._exchange.input_tokens - read - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": self._exchange.output_tokens,
        }

    @property
    def _reason(self) -> str:
        return "tool_use" if self._calls else "end_turn"

    def _message(self, content: list[Any], reason: str | None, usage: Any) -> dict[str, Any]:
        return {
            "id": f"msg_{self._exchange.number}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }

    def whole(self, text: str) -> Any:
        """The answer in one piece."""
        said = [{"type": "text", "text": text}] if text else []
        uses = [_make_use(*call) | {"input": json.loads(call[2])} for call in self._calls]
        return self._message([*said, *uses], self._reason, self._usage)

    async def stream(self, words: AsyncIterator[str]) -> AsyncIterator[bytes]:
        """The answer in pieces. The figures of the input come first, that of the output comes at the end."""
        begun = self._message([], None, self._usage | {"output_tokens": 1})
        yield _event("message_start", message=begun)
        index = 0
        async for word in words:
            if not index:
                index = 1
                yield _event(
                    "content_block_start", index=0, content_block={"type": "text", "text": ""}
                )
            delta = {"type": "text_delta", "text": word}
            yield _event("content_block_delta", index=0, delta=delta)
        if index:
            yield _event("content_block_stop", index=0)
        for at, call in enumerate(self._calls, index):
            for event in _stream_use(at, *call):
                yield event
        ended = {"stop_reason": self._reason, "stop_sequence": None}
        usage = {"output_tokens": self._exchange.output_tokens}
        yield _event("message_delta", delta=ended, usage=usage)
        yield _event("message_stop")


def _make_use(identity: str, tool: str, _: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": tool, "input": {}}


def _stream_use(index: int, identity: str, tool: str, arguments: str) -> Iterator[bytes]:
    use = _make_use(identity, tool, arguments)
    yield _event("content_block_start", index=index, content_block=use)
    delta = {"type": "input_json_delta", "partial_json": arguments}
    yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(name: str, **about: Any) -> bytes:
    return event_of({"type": name, **about}, name)
