"""`python mcp_fastmcp.py URL VERSION` where fastmcp and fastmcp-tasks are installed: handles of tasks, by the extension."""

from __future__ import annotations

from typing import Any

from fastmcp import Client
from fastmcp.exceptions import ToolError
from fastmcp_tasks.client import call_tool_task
from mcp_talk import URL, has, main, same, word


async def text(message: str, client: Any = None, **more: Any) -> str:
    """What a call answers."""
    async with client or Client(URL) as connected:
        result = await connected.call_tool("demo", {"message": message}, **more)
        return str(result.content[0].text)


async def lists() -> None:
    async with Client(URL) as client:
        assert "demo" in [tool.name for tool in await client.list_tools()]


async def calls() -> None:
    said = word()
    same(await text(f"echo {said}"), said)


async def streams() -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    same(await text("sleep 1", progress_handler=hear), "Slept 1 s")
    has(told, "Sleeping 1 s")


async def polls() -> None:
    """It takes longer than the host waits before it gives a handle."""
    same(await text("sleep 4"), "Slept 4 s")


async def begin(client: Any, message: str) -> Any:
    return await call_tool_task(client, "demo", {"message": message})


async def follows() -> None:
    async with Client(URL) as client:
        task = await begin(client, "sleep 4.5")
        same((await task.status()).status, "working")
        same((await task.wait()).status, "completed")
        same((await task.result()).content[0].text, "Slept 4.5 s")


async def cancels() -> None:
    async with Client(URL) as client:
        task = await begin(client, f"sleep {int(word(), 16) % 1000 + 100}")
        await task.cancel()
        same((await task.status()).status, "cancelled")


async def fails() -> None:
    said = word()
    try:
        await text(f"fail {said}")
    except ToolError as fault:
        has(fault, said)
    else:
        raise AssertionError("it did not fail")


async def asks() -> None:
    """The user answers, by `tasks/update`."""
    asked, said = [], word()

    async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return {"answer": said}

    same(await text(f"ask Who {said}?", Client(URL, elicitation_handler=answer)), said)
    same(asked, [f"Who {said}?"])


async def asks_in_words() -> None:
    """A client without a handler tells its model how to answer."""
    said = word()
    has(await text(f"ask Who {said}?"), f"Who {said}?", "call this tool again with task=")


if __name__ == "__main__":
    main(
        {
            check.__name__: check
            for check in (
                lists,
                calls,
                streams,
                polls,
                follows,
                cancels,
                fails,
                asks,
                asks_in_words,
            )
        }
    )
