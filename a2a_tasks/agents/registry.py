"""The agents of this host: every concrete subclass of Agent in the `agents.py` of an installed app."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from a2a_tasks.agents import security, switches, visibility
from a2a_tasks.agents.agent import Agent, unfit_skills
from a2a_tasks.conf import HostSettings, conf, forget

__all__ = ["agents", "has_listed", "check", "list_disabled", "discover", "find"]

_found: dict[str, Agent] = {}
_clashes: list[tuple[str, type[Agent], type[Agent]]] = []


def _concrete(cls: type[Agent]) -> Iterable[type[Agent]]:
    for sub in cls.__subclasses__():
        if not sub.abstract:
            yield sub
        yield from _concrete(sub)


def discover() -> None:
    """Import the `agents` module of every app and make one instance of each agent in it."""
    try:
        autodiscover_modules("agents")
    except SyntaxError as fault:
        raise ImproperlyConfigured(f"{fault.filename}, line {fault.lineno}: {fault.msg}") from fault
    except ModuleNotFoundError as fault:
        missing = (fault.name or "").partition(".")[0]
        # The adapters are in a layer above this package, and need not be loaded.
        line = import_module("a2a_tasks.frameworks.table").find_install_line(missing)
        raise (ImproperlyConfigured(f"{fault}: {line}") if line else fault) from fault
    for cls in _concrete(Agent):
        register(cls)
    if conf.DEFAULT_AGENT not in _found:  # a single agent need not be named
        HostSettings.DEFAULT_AGENT = next(iter(sorted(_found.keys() - list_disabled())), "")
        forget()


def register(cls: type[Agent]) -> None:
    """Add an agent. Of two with one slug the first stays, and `manage.py check` reports the clash."""
    hosted = _found.get(cls.slug)
    if hosted is None:
        _found[cls.slug] = cls()
    elif type(hosted) is not cls:
        _clashes.append((cls.slug, type(hosted), cls))


def list_disabled() -> set[str]:
    """Return the slugs in A2A_DISABLED_AGENTS, which operators cannot switch on."""
    return {slug.strip() for slug in conf.DISABLED_AGENTS.split(",")}


def _off() -> set[str]:
    return list_disabled() | switches.off()


def agents() -> list[Agent]:
    """Return the agents that are on, ordered by slug."""
    off = _off()
    return [agent for slug, agent in sorted(_found.items()) if slug not in off]


def find(slug: str) -> Agent | None:
    """Return the agent of that slug, if it is on."""
    return None if slug in _off() else _found.get(slug)


def has_listed() -> bool:
    """Return whether any agent needs a grant."""
    return any(map(security.is_listed, agents()))


def slugs() -> list[str]:
    """Return the slugs of all agents of this process, on or off."""
    return sorted(_found)


def find_hosted(slug: str) -> Agent | None:
    """Return the agent of that slug, on or off: for runs that were accepted while it was on."""
    return _found.get(slug)


def queues() -> list[str]:
    """Return the default queues of a worker: A2A_QUEUES, or the queues of all agents and of the host's own jobs."""
    configured = {name.strip() for name in str(conf.QUEUES).split(",")} - {""}
    return sorted(configured or {"agents", *(agent.queue for agent in agents())})


def queues_in_use() -> set[str]:
    """Return the queues in which new runs of the agents wait."""
    return {switches.queue_of(agent) for agent in agents()}


def check() -> Iterable[CheckMessage]:
    """Yield the system checks of all agents."""
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
