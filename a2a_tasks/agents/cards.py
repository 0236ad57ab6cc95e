"""Agent cards (A2A 1.0 §4.4, §8), generated from the agent's declarations and the host's rules."""

from __future__ import annotations

from typing import Any

from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.host_extensions import list_extensions
from a2a_tasks.agents.security import requirements, security_of
from a2a_tasks.agents.skill import Extension, Skill
from a2a_tasks.conf import conf
from a2a_tasks.protocol.mounts import MOUNTS, Mount

__all__ = ["card_of", "url_of"]

#: Interfaces in a 1.0 card, the preferred one first: dialect, its A2A-Version, binding. Clients of another dialect read
#: a card of that dialect, which names its own mount.
INTERFACES = (
    ("v10", "1.0", "JSONRPC"),
    ("v10", "1.0", "HTTP+JSON"),
    ("v03", "0.3", "JSONRPC"),
    ("v03", "0.3", "HTTP+JSON"),
)


def _drop_empty(**members: Any) -> dict[str, Any]:
    """Return the members without the empty ones; an explicit False stays."""
    return {key: value for key, value in members.items() if value not in (None, "", (), [], {})}


def _skill(agent: Agent, skill: Skill) -> dict[str, Any]:
    about = {"id": skill.id, "name": skill.name, "description": skill.description}
    return {
        **about,
        "tags": list(skill.tags),
        **_drop_empty(
            examples=list(skill.examples),
            inputModes=list(skill.input_modes),
            outputModes=list(skill.output_modes),
            securityRequirements=requirements(agent, skill.scopes) if skill.scopes else [],
        ),
    }


def _extension(extension: Extension) -> dict[str, Any]:
    members = _drop_empty(
        description=extension.description,
        params=dict(extension.params),
    )
    return {"uri": extension.uri, **members, **({"required": True} if extension.required else {})}


def url_of(agent: Agent, base_url: str, mount: Mount) -> str:
    """Return the URL of an agent's mount as it is written in cards: without a slash at its end."""
    return f"{base_url}/agents/{agent.slug}/{mount.path}"


def _interfaces(agent: Agent, base_url: str) -> list[dict[str, str]]:
    return [
        {
            "url": url_of(agent, base_url, MOUNTS[dialect]),
            "protocolBinding": binding,
            "protocolVersion": version,
        }
        for dialect, version, binding in INTERFACES
    ] + _grpc_interfaces(agent)


def _grpc_interfaces(agent: Agent) -> list[dict[str, str]]:
    """Return the gRPC interfaces, which have one address for all agents: 1.0 distinguishes them by `tenant`.

    Cards of 0.3 have no such member, so only the default agent offers 0.3. Without A2A_GRPC_URL there are none.
    """
    if not (url := _grpc_url()):
        return []
    way = {"url": url, "protocolBinding": "GRPC"}
    if agent.slug != conf.DEFAULT_AGENT:
        return [{**way, "tenant": agent.slug, "protocolVersion": "1.0"}]
    return [{**way, "protocolVersion": version} for version in ("1.0", "0.3")]


def _grpc_url() -> str:
    """Return the URL of gRPC that the operator named; empty = cards name none.

    A2A 1.0 §4.4.6 wants an absolute URL, and clients such as ADK refuse the whole card if an interface has none.
    """
    named = str(conf.GRPC_URL).strip().rstrip("/")
    return named if "://" in named or not named else f"https://{named}"


def card_of(agent: Agent, base_url: str) -> dict[str, Any]:
    """Return the public card, in the order of the specification. `base_url` has no slash at its end.

    Cards of other dialects are made from this one (`a2a_tasks/protocol/dialects/cards.py`).
    """
    provider = agent.provider
    return {
        "name": agent.name,
        "description": agent.description,
        "supportedInterfaces": _interfaces(agent, base_url),
        **_drop_empty(
            provider=provider and {"organization": provider.organization, "url": provider.url}
        ),
        "version": agent.version,
        **_drop_empty(documentationUrl=agent.documentation_url),
        "capabilities": {
            "streaming": agent.streaming,
            "pushNotifications": agent.push_notifications,
            **_drop_empty(
                extensions=[_extension(extension) for extension in list_extensions(agent)]
            ),
            "extendedAgentCard": agent.has_extended_card,
        },
        **security_of(agent),
        "defaultInputModes": list(agent.default_input_modes),
        "defaultOutputModes": list(agent.default_output_modes),
        "skills": [_skill(agent, skill) for skill in agent.skills],
        **_drop_empty(iconUrl=agent.icon_url),
    }
