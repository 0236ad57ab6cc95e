"""Published clients of other protocols at the host's doors: the table *At the doors* of docs/reference/known-clients.md."""

from __future__ import annotations

from dataclasses import dataclass

from lab.clients.known import join_equal
from lab.clients.published import Client

__all__ = ["AT_DOORS", "AtDoor", "table"]

DOORS = {"MCP": "MCP", "OPENAI": "OpenAI's API", "AG-UI": "AG-UI"}
#: What clients are asked, and its name in the table.
WORDS = {
    "calls": "call",
    "chats": "answer",
    "runs": "answer",
    "streams": "stream",
    "converses": "conversation",
    "asks": "question as a form",
    "polls": "handle",
    "asks_in_words": "question in words",
    "interrupts": "question",
    "fills_forms": "form",
    "shows_files": "file",
    "shows_data": "data",
    "cancels": "cancel",
    "stops": "cancel",
    "fails_once": "failure without a second task",
    "repeats": "failure without a second task",
    "carries_out_once": "call without a second task",
    "tells_failures": "failure in words",
}
#: What every framework is asked.
SHOWN = ("calls", "shows_files", "shows_data", "asks_in_words", "fails")
CHATS = ("chats", "streams", "converses", "fails_once", "tells_failures")
IN_LANGCHAIN = tuple(f"{check}_in_langchain" for check in SHOWN)
RUNS = ("runs", "interrupts", "fills_forms", "gives_up", "fails", "cancels")
OLD, NEW = "2025-11-25", "2026-07-28"


@dataclass(frozen=True)
class AtDoor:
    """A release of a client at a door: a row of the table."""

    name: str
    client: Client
    checks: tuple[str, ...]
    to_set: str = ""
    cannot: str = ""

    @property
    def door(self) -> str:
        """Its protocol."""
        return self.client.bindings[0]

    @property
    def row(self) -> str:
        """Its row of the table."""
        words = (WORDS.get(check.removesuffix("_in_langchain"), "") for check in self.checks)
        works = ", ".join(dict.fromkeys(filter(None, words)))
        door = f"{DOORS[self.door]} {self.client.version}".strip()
        return f"| {' | '.join(cell or '-' for cell in (self.name, door, works, self.to_set, self.cannot))} |"


def _mcp(script: str, version: str) -> Client:
    return Client(script, version, ("MCP",))


def _chat(script: str, door: str = "OPENAI") -> Client:
    return Client(script, "", (door,))


LEAVES = "stop an agent by leaving its loop: the stream stays open"

AT_DOORS = [
    AtDoor(
        "fastmcp 4.1.2",
        _mcp("mcp_fastmcp.py", NEW),
        ("lists", *SHOWN[:1], "streams", "polls", "follows", "cancels", "fails", "asks", SHOWN[3]),
    ),
    AtDoor("mcp 1.30.0", _mcp("mcp_old.py", OLD), ("calls", "fails", "asks_in_words")),
    AtDoor(
        "langchain-mcp-adapters 0.3.2",
        _mcp("mcp_old.py", OLD),
        IN_LANGCHAIN,
        cannot="go on after a link to a resource, so the host sends none",
    ),
    AtDoor(
        "@modelcontextprotocol/sdk 1.32.2",
        _mcp("mcp_js.mjs", OLD),
        ("lists", "calls", "streams", "cancels"),
        "`timeout` above 60 s, where `A2A_MCP_OLD_SECONDS` is above 50",
    ),
    AtDoor(
        "strands-agents 1.62.0",
        _mcp("mcp_strands.py", NEW),
        SHOWN,
        cannot="show links to resources",
    ),
    AtDoor(
        "agent-framework-core 1.23.0",
        _mcp("mcp_agent_framework.py", NEW),
        SHOWN,
        cannot="tell its model why a call failed",
    ),
    AtDoor(
        "google-adk 2.13.0",
        _mcp("mcp_adk.py", OLD),
        SHOWN,
        cannot="say that its key was refused: it goes on without tools",
    ),
    AtDoor(
        "crewai 1.15.30",
        _mcp("mcp_crewai.py", OLD),
        ("carries_out_once",),
        cannot="read an answer: it ends with `no running event loop`, also when it is called again",
    ),
    AtDoor(
        "openai 6.49.0", _chat("chat_js.mjs"), ("chats", "streams", "stops"), "`abort()` to stop"
    ),
    AtDoor(
        "ai 6.0.326",
        _chat("chat_js.mjs"),
        ("repeats", "tells_failures"),
        "an abort signal to stop",
        "see errors in a stream of text: the words of the failure are in the text",
    ),
    AtDoor(
        "strands-agents 1.62.0",
        _chat("chat_strands.py"),
        CHATS,
        cannot="stop asking: after a 429 it sends 18 requests in 158 s",
    ),
    AtDoor("litellm 1.110.2", _chat("chat_litellm.py"), CHATS, cannot=LEAVES),
    AtDoor("llm 0.36", _chat("chat_llm.py"), CHATS, cannot=LEAVES),
    AtDoor("agent-framework-openai 1.17.0", _chat("chat_agent_framework.py"), CHATS, cannot=LEAVES),
    AtDoor("gradio 6.31.0", _chat("chat_gradio.py"), CHATS, "`gradio.load_chat`", cannot=LEAVES),
    AtDoor("@ag-ui/client 1.0.0", _chat("chat_js.mjs", "AG-UI"), RUNS),
]


def table() -> str:
    """The table."""
    head = "| client | door | works | to set | cannot |\n| --- | --- | --- | --- | --- |"
    return "\n".join((head, *join_equal(known.row for known in AT_DOORS)))
