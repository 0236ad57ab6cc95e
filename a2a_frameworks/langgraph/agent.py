"""Graphs of LangGraph, unchanged: streaming, interrupts, memory, and no finished node taken again after a crash.

docs/frameworks/langgraph.md is the guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent
from a2a_tasks.agents import Turn

__all__ = ["LangGraphAgent"]


class LangGraphAgent(ModelAgent, abstract=True):
    """An agent that a compiled graph of LangGraph works for."""

    framework = "langgraph"
    call_class = "a2a_frameworks.langgraph.call:GraphCall"
    source_title = "a compiled graph of LangGraph"
    attribute = "graph"
    #: The compiled graph; one for all turns. Its own checkpointer is not used.
    graph: ClassVar[Any] = None
    #: Nodes whose messages the client sees; empty = all. Those of a subgraph belong to its node, too.
    nodes: ClassVar[Sequence[str]] = ()
    #: The key of the state that is the result, beside the messages; empty = none.
    output_key: ClassVar[str] = ""

    async def make_input(self, turn: Turn) -> Any:
        """Return the input of the graph for a message. An override may be a plain function."""
        from a2a_frameworks.langgraph.messages import make_message  # noqa: PLC0415

        return {"messages": [await make_message(turn)]}

    def make_config(self, turn: Turn) -> Mapping[str, Any]:
        """Return more of the config of a run, such as a recursion limit. Thread and turn are the host's."""
        return {}

    def make_context(self, turn: Turn) -> Any:
        """Return the context of a run (`runtime.context` in nodes)."""
        return None

    def find_fault(self, hosted: Any) -> str:
        """Return why the graph cannot be hosted; empty = it can."""
        from a2a_frameworks.langgraph.call import find_unfit  # noqa: PLC0415

        has_own_input = type(self).make_input is not LangGraphAgent.make_input
        return super().find_fault(hosted) or find_unfit(hosted, has_own_input=has_own_input)
