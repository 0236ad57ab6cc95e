"""The AI catalog at `/.well-known/ai-catalog.json` and `ard.json`: where registries find the agents of a domain.

Source: ai-catalog 1.0 and Agentic Resource Discovery 0.9 §4. Each caller sees the agents that exist for it.
"""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from a2a_tasks.access.authentication import catalogue
from a2a_tasks.agents import Agent
from a2a_tasks.agents.registry import has_listed
from a2a_tasks.bindings.card_endpoint import etag_of, is_unchanged, make_cache_headers
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.http import LOCAL, Request, Send, is_served, respond, without_body
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import MethodNotAllowed, MethodNotFound
from a2a_tasks.protocol.jsontext import write

__all__ = ["serve"]

CARD = "application/a2a-agent-card+json"
#: The numbers of queries that the schema allows, if there are any.
MIN_QUERIES, MAX_QUERIES = 2, 5
NO_PUBLISHER = "A catalog names its agents by the domain of the host: set A2A_PUBLIC_URL"


async def serve(request: Request, send: Send, _: OperationTable) -> None:
    """Send the catalog of the agents that exist for the caller; 304 for a client that has it."""
    if request.method == "HEAD":
        send = without_body(send)
    try:
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed(allow="GET, HEAD")
        agents = await catalogue(request.credentials)
        body = write(_make_catalog(agents, request.base_url, _publisher(request)))
    except Exception as fault:  # noqa: BLE001 - after any failure the client gets an answer
        error = to_a2a_error(fault)
        await respond(send, error.http_status, rest.error_body(error), headers_of(error))
        return
    etag = etag_of(body)
    headers = [(b"etag", etag), *make_cache_headers(private=has_listed())]
    unchanged = is_unchanged(request, etag)
    await respond(send, 304 if unchanged else 200, b"" if unchanged else body, headers)


def _publisher(request: Request) -> str:
    """Return the domain of the host. Raises MethodNotFound if only the request's header names one."""
    if conf.PUBLIC_URL:
        host = urlsplit(str(conf.PUBLIC_URL)).hostname or ""
        return host.replace(":", "-")  # of an IPv6 address, for which a name has no room
    if is_served(request.header("host"), LOCAL):
        return "localhost"
    raise MethodNotFound(NO_PUBLISHER)


def _make_catalog(agents: list[Agent], base_url: str, publisher: str) -> dict[str, Any]:
    entries = [_make_entry(agent, base_url, publisher) for agent in agents]
    return {"specVersion": "1.0", "host": {"displayName": publisher}, "entries": entries}


def _make_entry(agent: Agent, base_url: str, publisher: str) -> dict[str, Any]:
    """Return the entry of an agent. Members that the schema wants filled are left out if there is nothing to say."""
    examples = dict.fromkeys(example for skill in agent.skills for example in skill.examples)
    queries = list(islice(examples, MAX_QUERIES))
    more = {
        "tags": list(dict.fromkeys(tag for skill in agent.skills for tag in skill.tags)),
        "capabilities": [skill.id for skill in agent.skills],
        "representativeQueries": queries if len(queries) >= MIN_QUERIES else [],
    }
    return {
        "identifier": f"urn:air:{publisher}:agent:{agent.slug}",
        "displayName": agent.name,
        "type": CARD,
        "url": f"{base_url}/agents/{agent.slug}/.well-known/agent-card.json",
        "description": agent.description,
        "version": agent.version,
        **{name: values for name, values in more.items() if values},
    }
