"""`python mcp_old.py URL VERSION` where mcp 1.30 and langchain-mcp-adapters are installed: the older era."""

from __future__ import annotations

from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp import ClientSession
from mcp.client.streamable_http import (  # type: ignore[attr-defined]  # of the older release
    streamablehttp_client,
)
from mcp_talk import URL, checks_of, has, main, same, word


async def call(arguments: dict[str, Any]) -> Any:
    """The result of a call by the library itself."""
    async with (
        streamablehttp_client(URL) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        return await session.call_tool("demo", arguments)


async def calls() -> None:
    said = word()
    result = await call({"message": f"echo {said}", "data": None, "task": None})
    same((result.content[0].text, result.isError), (said, False))


async def fails() -> None:
    said = word()
    result = await call({"message": f"fail {said}"})
    same((result.content[0].text, result.isError), (said, True))


async def asks_in_words() -> None:
    said = word()
    asked = await call({"message": f"ask Who {said}?"})
    same(asked.isError, False)
    task = asked.meta["a2a-host"]["taskId"]
    has(asked.content[0].text, f"Who {said}?", task)
    same((await call({"message": "Ada", "task": task})).content[0].text, "Ada")


async def tool() -> Any:
    """The agent as a tool of LangChain."""
    client = MultiServerMCPClient({"host": {"url": URL, "transport": "streamable_http"}})
    return next(each for each in await client.get_tools() if each.name == "demo")


async def in_langchain(message: str) -> Any:
    """What the model gets. A link of a resource would end the run."""
    return await (await tool()).ainvoke({"message": message})


if __name__ == "__main__":
    own = {check.__name__: check for check in (calls, fails, asks_in_words)}
    theirs = checks_of(in_langchain)
    main(own | {f"{name}_in_langchain": check for name, check in theirs.items()})
