"""`python mcp_crewai.py URL VERSION` where crewai[mcp] is installed: tools of MCP in its agents."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from typing import Any

from crewai import Agent
from crewai.mcp import MCPServerHTTP
from mcp_talk import URL, has, main, same, word

#: It makes a model before it has anything to ask it.
os.environ["OPENAI_API_KEY"] = "none"


def use(message: str) -> str:
    """What the model reads of a call."""
    about: dict[str, Any] = {"role": "a", "goal": "b", "backstory": "c", "llm": "gpt-4o"}
    agent = Agent(**about, mcps=[MCPServerHTTP(url=URL)])
    tools = agent.get_mcp_tools(agent.mcps)
    tool = next(each for each in tools if each.name.endswith("_demo"))
    try:
        return str(tool.run(message=message))
    except Exception as fault:  # noqa: BLE001 - its model reads the words
        return str(fault)


def count(said: str) -> int:
    """The tasks in which this word is."""
    url = f"{URL.removesuffix('mcp')}agents/demo/tasks?historyLength=5&pageSize=100"
    asked = urllib.request.Request(url, headers={"A2A-Version": "1.0"})  # noqa: S310 - the host's
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - the same
        return sum(said in json.dumps(task) for task in json.load(answer)["tasks"])


async def carries_out_once() -> None:
    """Its model reads of an error when the connection is closed, and calls again: that begins nothing."""
    said = word()
    for _ in range(3):
        has(await asyncio.to_thread(use, f"echo {said}"), "no running event loop")
    same(count(said), 1)


if __name__ == "__main__":
    main({"carries_out_once": carries_out_once})
