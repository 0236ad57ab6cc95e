"""The model server and the ledger of the tools in one: it knows each request and call, and says when a moment of a case has come."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from lab.framework_kills.cases import HELD, Case
from lab.framework_kills.evidence import Exchange, Execution, Said
from tests import model_server

__all__ = ["Oracle"]

#: Called when a moment has come: what, task, line, n. True if a kill was made for it.
Reach = Callable[[str, int, int, int], bool]


class Oracle(model_server.ModelServer):
    """A model server whose answers are those of a case. It runs in a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.reach: Reach = lambda *_: False
        self.requests: list[Exchange] = []
        self.executions: list[Execution] = []
        self._prompts: dict[str, int] = {}

    def begin(self, case: Case) -> None:
        """Begin with a case; numbers of requests go on."""
        self._prompts = {case.prompt(n): n for n in range(len(case.tasks))}
        self.requests, self.executions = [], []

    def begin_task(self, reach: Reach) -> None:
        """Tell of the moments of the next task."""
        self.reach = reach

    # --- the ledger -------------------------------------------------------------------------

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a model's client or a tool."""
        if scope["type"] != "http" or scope["path"] != "/v1/ledger":
            return await super().__call__(scope, receive, send)
        asked = {key: values[0] for key, values in parse_qs(scope["query_string"].decode()).items()}
        task, line, call = _split(asked["call"])
        if "number" not in asked:
            number = self._count_executions() + 1
            self.executions.append(Execution(number, asked["call"], time.time()))
            if self.reach("begun", task, line, call):
                await receive()  # its end
                await receive()
                return None
        else:
            number = int(asked["number"])
            (executed,) = [one for one in self.executions if one.number == number]
            executed.done = time.time()
        start = {"type": "http.response.start", "status": 200, "headers": []}
        await send(start)
        await send({"type": "http.response.body", "body": str(number).encode()})
        if "number" in asked:
            self.reach("done", task, line, call)
        return None

    def _count_executions(self) -> int:
        return max((one.number for one in self.executions), default=0)

    async def _pass(self, what: str, task: int, line: int, n: int = 0) -> None:
        """Report a moment. If a process is killed for it, the request or call under way is not answered."""
        if self.reach(what, task, line, n) and what in HELD:
            await asyncio.Event().wait()

    # --- the model --------------------------------------------------------------------------

    async def _answer(
        self, shape: Any, request: Any, entries: Any, exchange: Any, send: Any
    ) -> None:
        task = self._prompts.get(exchange.prompt, -1)
        made = Exchange(
            exchange.number,
            task,
            exchange.line,
            time.time(),
            tuple(_read(message) for message in request["messages"]),
            exchange.input_tokens,
        )
        self.requests.append(made)

        async def watched(event: Any) -> None:
            await send(event)
            if event["type"] == "http.response.body" and not event.get("more_body"):
                self.reach("answered", task, exchange.line, 0)

        await self._pass("asked", task, exchange.line)
        try:
            await super()._answer(shape, request, entries, exchange, watched)
        finally:
            made.state, made.output_tokens = exchange.state, exchange.output_tokens
            made.ended = time.time()

    def _plan(self, entries: Any, exchange: Any) -> model_server.Plan:
        plan = super()._plan(entries, exchange)
        number = str(exchange.number)
        plan.text = [word.replace("$NUMBER", number) for word in plan.text]
        vars(plan)["exchange"] = exchange
        return plan

    async def _words(self, plan: model_server.Plan) -> AsyncIterator[str]:
        exchange: model_server.Exchange = vars(plan)["exchange"]
        task, n = self._prompts.get(exchange.prompt, -1), 0
        async for word in super()._words(plan):
            yield word
            n += 1
            await self._pass("word", task, exchange.line, n)


def _split(call: str) -> tuple[int, int, int]:
    """The numbers in `t0l1c2`."""
    task, _, rest = call.removeprefix("t").partition("l")
    line, _, number = rest.partition("c")
    return int(task), int(line), int(number)


def _read(message: Mapping[str, Any]) -> Said:
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    calls = tuple(
        (call["id"], call["function"]["name"], _argument(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    return Said(message["role"], content, calls, message.get("tool_call_id", ""))


def _argument(arguments: str) -> str:
    """The text that a tool was given."""
    return str(json.loads(arguments)["text"])
