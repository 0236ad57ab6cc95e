"""The agents of this host: every concrete subclass of Agent in the `agents.py` of an installed app."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.checks import CheckMessage, Error
from django.utils.module_loading import autodiscover_modules

from a2a_tasks.agents import security, switches, visibility
from a2a_tasks.agents.agent import Agent, unfit_skills
from a2a_tasks.conf import HostSettings, conf, forget

__all__ = ["agents", "any_listed", "check", "disabled", "discover", "find"]

_found: dict[str, Agent] = {}
_clashes: list[tuple[str, type[Agent], type[Agent]]] = []


def _concrete(cls: type[Agent]) -> Iterable[type[Agent]]:
    for sub in cls.__subclasses__():
        if not sub.abstract:
            yield sub
        yield from _concrete(sub)


def discover() -> None:
    """Import every app's `agents` module and make one instance of each agent in them."""
    autodiscover_modules("agents")
    for cls in _concrete(Agent):
        register(cls)
    if conf.DEFAULT_AGENT not in _found:  # nobody has to name the one agent there is
        HostSettings.DEFAULT_AGENT = next(iter(sorted(_found.keys() - disabled())), "")
        forget()


def register(cls: type[Agent]) -> None:
    """Add an agent. Of two with one slug the first stays, and `manage.py check` tells."""
    known = _found.get(cls.slug)
    if known is None:
        _found[cls.slug] = cls()
    elif type(known) is not cls:
        _clashes.append((cls.slug, type(known), cls))


def disabled() -> set[str]:
    """The agents that A2A_DISABLED_AGENTS has off, whatever operators switch."""
    return {slug.strip() for slug in conf.DISABLED_AGENTS.split(",")}


def _off() -> set[str]:
    return disabled() | switches.off()


def agents() -> list[Agent]:
    """The agents that are on, by slug."""
    off = _off()
    return [agent for slug, agent in sorted(_found.items()) if slug not in off]


def find(slug: str) -> Agent | None:
    """The agent of that slug, if it is on."""
    return None if slug in _off() else _found.get(slug)


def any_listed() -> bool:
    """Is there an agent that not everybody who is let in may use?"""
    return any(map(security.listed, agents()))


def slugs() -> list[str]:
    """The slugs of all agents of this process, on or off."""
    return sorted(_found)


def hosted(slug: str) -> Agent | None:
    """The agent of that slug, on or off: for runs accepted while it was on."""
    return _found.get(slug)


def queues() -> list[str]:
    """The queues that a worker takes from if it is not told otherwise: those of all agents, and of the host's own jobs."""
    asked = {name.strip() for name in str(conf.QUEUES).split(",")} - {""}
    return sorted(asked or {"agents", *(agent.queue for agent in agents())})


def queues_in_use() -> set[str]:
    """The queues in which what is sent to the agents now waits."""
    return {switches.queue_of(agent) for agent in agents()}


def check() -> Iterable[CheckMessage]:
    """System checks of all agents."""
    for slug, first, second in _clashes:
        yield Error(
            f"two agents are called {slug!r}: {first.__module__}.{first.__qualname__} and "
            f"{second.__module__}.{second.__qualname__}",
            hint="Give one of them another slug.",
            id="a2a_tasks.E001",
        )
    for agent in _found.values():
        yield from agent.check()
        if unfit_skills(agent.skills):
            continue
        yield from security.check(agent)
        yield from visibility.check(agent)
