"""The start page at `/`, and the pages of agents for browsers, with their skills and a command to try each."""

from __future__ import annotations

import json
import shlex
from typing import Any

from csp.constants import SELF
from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from a2a_console.connect import find_target
from a2a_console.playground import has_playground
from a2a_console.site import page_url
from a2a_tasks.access.grants import GrantRight, rights_in_thread
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents.security import allows_anonymous, is_listed, sample_header
from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.conf import base_url, conf
from a2a_tasks.protocol.mounts import MOUNTS, Mount

__all__ = ["list_agents", "show_agent", "start"]


@csrf_exempt  # other methods get 405, rather than a page about a token
@require_safe
def start(request: HttpRequest) -> HttpResponseBase:
    """Show the agents, the default one first, and the playground if the host has it."""
    return _show_with_playground(request) if has_playground() else _show(request)


@csrf_exempt
@require_safe
def list_agents(request: HttpRequest) -> HttpResponse:
    """Show the agents to a browser; clients of the protocol get the cards at this address."""
    return render(request, "a2a_project/agents.html", _describe(request))


@csrf_exempt
@require_safe
def show_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """Show an agent to a browser. For one that does not exist for its reader, show those that do."""
    about = _describe(request)
    found = [one for one in about["agents"] if one["agent"].slug == slug]
    about |= {"agents": found or about["agents"], "alone": bool(found), "missing": not found}
    about |= {"target": find_target(request, found[0]["agent"])} if found else {}
    return render(request, "a2a_project/agents.html", about, status=200 if found else 404)


#: Pictures, sounds and documents of agents are `data:`: they have no origin and run nothing (docs/decisions/0046).
@csp_update({"img-src": [SELF, "data:"], "media-src": ["data:"], "frame-src": ["data:"]})
def _show_with_playground(request: HttpRequest) -> HttpResponse:
    return _show(request)


def _show(request: HttpRequest) -> HttpResponse:
    return render(request, "a2a_project/start.html", _describe(request))


def _describe(request: HttpRequest) -> dict[str, Any]:
    base = base_url(request.build_absolute_uri("/"))
    visible = filter(_everybody_sees, registry.agents())
    agents = sorted(visible, key=lambda agent: agent.slug != conf.DEFAULT_AGENT)
    return {
        "agents": [_describe_agent(agent, base) for agent in agents],
        "base": base,
        "anonymous": allows_anonymous(),
        "playground": has_playground(),
        "api_key_header": conf.API_KEY_HEADER,
        "admin": page_url("index"),
        "tasks": page_url("a2a_tasks_task_changelist"),
    }


def _everybody_sees(agent: Agent) -> bool:
    """Return whether the agent is open, or its card granted to everyone. The page does not identify its reader."""
    return not is_listed(agent) or GrantRight.SEE in rights_in_thread(ANONYMOUS, agent.slug)


def _describe_agent(agent: Agent, base: str) -> dict[str, Any]:
    url = f"{base}/agents/{agent.slug}/"
    return {
        "agent": agent,
        "url": url,
        "card": f"{url}.well-known/agent-card.json",
        "mounts": [_link_dialect(url, mount) for mount in reversed(list(MOUNTS.values()))],
        "try_it": _try_it(agent, url),
    }


def _link_dialect(url: str, mount: Mount) -> dict[str, str]:
    """Return a dialect's name, and the URL of its card."""
    name = mount.path.rpartition("/")[2]
    return {"name": name, "card": f"{url}{mount.path}/.well-known/agent-card.json"}


def _try_it(agent: Agent, url: str) -> str:
    """Return a shell command that sends the first example of the agent's skills."""
    examples = [example for skill in agent.skills for example in skill.examples]
    message = {
        "messageId": "1",
        "role": "ROLE_USER",
        "parts": [{"text": examples[0] if examples else "Hello"}],
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    headers = ["Content-Type: application/json", "A2A-Version: 1.0"]
    required = [extension.uri for extension in agent.extensions if extension.required]
    if required:
        headers.append(f"A2A-Extensions: {', '.join(required)}")
    if own := sample_header(agent):
        headers.append(own)
    words = ["curl", "-s", url]
    for header in headers:
        words += ["-H", header]
    return shlex.join([*words, "-d", json.dumps(body, ensure_ascii=False)])
