"""Two shapes of answers of `tests/model_server.py`: chat completions and responses, whole and as events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

__all__ = ["Calls", "ChatCompletion", "Entries", "Response", "event_of", "text_of"]

Calls = list[tuple[str, str, str]]
Entries = list[tuple[str, str]]
#: The time of every answer; nothing depends on it.
CREATED = 1_700_000_000


def text_of(content: Any) -> str:
    """The texts in the content of a message; other parts by their kind."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(part.get("text") or f"<{part['type']}>" for part in content)


def event_of(data: Any, name: str = "") -> bytes:
    """A server-sent event."""
    opening = f"event: {name}\n" if name else ""
    return f"{opening}data: {json.dumps(data)}\n\n".encode()


class ChatCompletion:
    """An answer of `/v1/chat/completions`."""

    END = b"data: [DONE]\n\n"

    def __init__(self, request: Any, exchange: Any, calls: Calls) -> None:
        self._exchange, self._calls, model = exchange, calls, request.get("model", "")
        #: A stream has usage only if the request asks for it, as that of OpenAI.
        self._tells_usage = (request.get("stream_options") or {}).get("include_usage", False)
        self._about = {"id": f"chat-{exchange.number}", "created": CREATED, "model": model}

    @staticmethod
    def read(request: Any) -> Entries:
        """The conversation, as pairs of a role (user, model, tool, system) and a text."""
        roles = {"assistant": "model", "developer": "system"}
        return [
            (roles.get(m["role"], m["role"]), text_of(m.get("content")))
            for m in request["messages"]
        ]

    @staticmethod
    def read_calls(request: Any) -> list[str]:
        """The ids of the calls in the conversation."""
        return [call["id"] for m in request["messages"] for call in m.get("tool_calls") or ()]

    @property
    def _usage(self) -> dict[str, Any]:
        given, made = self._exchange.input_tokens, self._exchange.output_tokens
        about = {"cached_tokens": self._exchange.cached_tokens}
        return {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
            "prompt_tokens_details": about,
        }

    @property
    def _reason(self) -> str:
        return "tool_calls" if self._calls else "stop"

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            {"id": identity, "type": "function", "function": {"name": tool, "arguments": arguments}}
            for identity, tool, arguments in self._calls
        ]

    def whole(self, text: str) -> Any:
        """The answer in one piece."""
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if self._calls:
            message["tool_calls"] = self._tool_calls()
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return {
            **self._about,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage,
        }

    async def stream(self, words: AsyncIterator[str]) -> AsyncIterator[bytes]:
        """The answer in pieces."""
        yield self._chunk({"role": "assistant", "content": ""})
        async for word in words:
            yield self._chunk({"content": word})
        for index, call in enumerate(self._tool_calls()):
            yield self._chunk({"tool_calls": [{"index": index, **call}]})
        yield self._chunk({}, self._reason)
        if self._tells_usage:
            about = {**self._about, "object": "chat.completion.chunk", "choices": []}
            yield event_of({**about, "usage": self._usage})

    def _chunk(self, delta: Any, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event_of({**self._about, "object": "chat.completion.chunk", "choices": [choice]})


class Response:
    """An answer of `/v1/responses`."""

    END = b""

    def __init__(self, request: Any, exchange: Any, calls: Calls) -> None:
        self._model, self._exchange, self._calls = request.get("model", ""), exchange, calls
        self._number = 0

    @staticmethod
    def read(request: Any) -> Entries:
        """The conversation, as pairs of a role (user, model, tool, system) and a text."""
        if isinstance(request["input"], str):
            return [("user", request["input"])]
        entries: Entries = []
        for item in request["input"]:
            kind = item.get("type", "message")
            if kind == "function_call_output":
                entries.append(("tool", text_of(item["output"])))
            elif kind == "function_call" or item.get("role") == "assistant":
                if not entries or entries[-1][0] != "model":  # an answer is one or more items
                    entries.append(("model", ""))
            else:
                entries.append((item["role"], text_of(item["content"])))
        return entries

    @staticmethod
    def read_calls(request: Any) -> list[str]:
        """The ids of the calls in the conversation."""
        given = request["input"] if isinstance(request["input"], list) else []
        return [item["call_id"] for item in given if item.get("type") == "function_call"]

    def whole(self, text: str) -> Any:
        """The answer in one piece."""
        output = [self._message(text)] if text else []
        return self._response("completed", [*output, *self._function_calls()])

    def _response(self, status: str, output: list[Any]) -> dict[str, Any]:
        given, made = self._exchange.input_tokens, self._exchange.output_tokens
        usage = {
            "input_tokens": given,
            "input_tokens_details": {
                "cached_tokens": self._exchange.cached_tokens,
                "cache_write_tokens": 0,
            },
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": given + made,
        }
        return {
            "id": f"resp_{self._exchange.number}",
            "object": "response",
            "created_at": CREATED,
            "model": self._model,
            "status": status,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if status == "completed" else None,
        }

    def _message(self, text: str | None) -> dict[str, Any]:
        content = [] if text is None else [self._text(text)]
        item = {"id": f"msg_{self._exchange.number}", "type": "message", "role": "assistant"}
        return {**item, "status": "completed", "content": content}

    @staticmethod
    def _text(text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": []}

    def _function_calls(self) -> list[dict[str, Any]]:
        return [
            {
                "id": f"fc_{identity}",
                "type": "function_call",
                "call_id": identity,
                "name": tool,
                "arguments": arguments,
                "status": "completed",
            }
            for identity, tool, arguments in self._calls
        ]

    async def stream(self, words: AsyncIterator[str]) -> AsyncIterator[bytes]:
        """The answer in pieces."""
        yield self._event("created", response=self._response("in_progress", []))
        text, index = "", 0
        place = {"item_id": f"msg_{self._exchange.number}", "output_index": 0, "content_index": 0}
        async for word in words:
            if not text:
                index = 1
                yield self._event("output_item.added", output_index=0, item=self._message(None))
                yield self._event("content_part.added", **place, part=self._text(""))
            text += word
            yield self._event("output_text.delta", **place, delta=word, logprobs=[])
        if text:
            yield self._event("output_text.done", **place, text=text, logprobs=[])
            yield self._event("content_part.done", **place, part=self._text(text))
            yield self._event("output_item.done", output_index=0, item=self._message(text))
        for at, call in enumerate(self._function_calls(), index):
            begun = {**call, "arguments": "", "status": "in_progress"}
            place = {"item_id": call["id"], "output_index": at}
            yield self._event("output_item.added", output_index=at, item=begun)
            yield self._event("function_call_arguments.delta", **place, delta=call["arguments"])
            yield self._event(
                "function_call_arguments.done",
                **place,
                arguments=call["arguments"],
                name=call["name"],
            )
            yield self._event("output_item.done", output_index=at, item=call)
        yield self._event("completed", response=self.whole(text))

    def _event(self, name: str, /, **about: Any) -> bytes:
        kind = f"response.{name}"
        self._number += 1
        return event_of({"type": kind, "sequence_number": self._number - 1, **about}, kind)
