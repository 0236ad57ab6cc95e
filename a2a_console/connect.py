"""The addresses at which clients of each door reach an agent, the header of their key, and the open doors."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from a2a_tasks.agents import Agent
from a2a_tasks.agents.security import open_to_anybody
from a2a_tasks.conf import base_url, conf, opens_door

__all__ = ["DoorAddresses", "find_target"]


@dataclass(frozen=True)
class DoorAddresses:
    """The context of the template `a2a_console/connect.html`."""

    slug: str
    #: Base URL of the host, without a slash at its end.
    base: str
    #: URL of the agent, with a slash at its end.
    url: str
    #: Header of API keys.
    header: str
    #: True if the agent may be used without a key.
    is_open: bool
    opens_mcp: bool
    opens_openai: bool
    opens_ag_ui: bool
    opens_catalog: bool


def find_target(request: HttpRequest, agent: Agent) -> DoorAddresses:
    """Return the addresses of an agent, as the reader of the page sees the host."""
    base = base_url(request.build_absolute_uri("/"))
    return DoorAddresses(
        slug=agent.slug,
        base=base,
        url=f"{base}/agents/{agent.slug}/",
        header=str(conf.API_KEY_HEADER),
        is_open=open_to_anybody(agent),
        opens_mcp=opens_door("mcp"),
        opens_openai=opens_door("openai"),
        opens_ag_ui=opens_door("ag-ui"),
        opens_catalog=opens_door("catalog"),
    )
