"""The agents of this host: every concrete subclass of Agent in the `agents.py` of an installed app, and the announced ones.

Agents of other environments are known by their announcements (`versions.py`). An agent may have several versions: that
of the code of this process, if there is one, and announced ones. One of them serves: its card is the agent's card, and
it gets the new conversations, except for the share of a canary.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 - Django's own name
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from a2a_tasks.agents import forwarded_headers, frameworks, security, switches, versions
from a2a_tasks.agents.agent import Agent, unfit_skills
from a2a_tasks.agents.declaration import name_queue
from a2a_tasks.conf import HostSettings, conf, forget

__all__ = [
    "agents",
    "choose",
    "has_listed",
    "check",
    "list_disabled",
    "discover",
    "find",
    "find_of_host",
    "find_own",
    "list_own",
]

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
        line = frameworks.find_install_line(missing)
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


def list_disabled() -> frozenset[str]:
    """Return the slugs in A2A_DISABLED_AGENTS, which operators cannot switch on."""
    return _split(conf.DISABLED_AGENTS)


@functools.lru_cache(maxsize=8)
def _split(slugs: str) -> frozenset[str]:
    return frozenset(map(str.strip, slugs.split(",")))


def _off() -> frozenset[str]:
    return list_disabled() | switches.off()


def find_hosted(slug: str) -> Agent | None:
    """Return the agent of that slug, on or off, in the version that serves.

    This is the version that operators chose, else that of this process, else the oldest with a living worker.
    """
    return _find_version(slug, switches.find(slug).version)


def _find_version(slug: str, chosen: str) -> Agent | None:
    own = _found.get(slug)
    if own is not None and chosen in {"", own.version}:
        return own
    announced = versions.list_versions(slug)
    if named := versions.find(slug, chosen):
        return named.agent
    live = [one.agent for one in announced if one.is_live]
    return own or next(iter(live or [one.agent for one in announced[-1:]]), None)


def choose(slug: str, conversation: str) -> Agent | None:
    """Return the version for a new conversation: that of the canary for its share, else the one that serves."""
    switch = switches.find(slug)
    if switch.canary and versions.percentile(conversation) < switch.canary_percent:
        own, canary = _found.get(slug), versions.find(slug, switch.canary)
        if own is not None and own.version == switch.canary:
            return own
        if canary is not None and canary.is_live:
            return canary.agent
    return find_hosted(slug)


def list_failing_versions() -> list[tuple[str, str]]:
    """Return the announced versions (slug, version) without a worker whose tasks are to fail."""
    return [
        (slug, one.agent.version)
        for slug in versions.list_slugs()
        for one in versions.list_versions(slug)
        if not one.is_live and one.agent.when_version_is_gone == "fail"
    ]


def agents() -> list[Agent]:
    """Return the agents that are on, ordered by slug."""
    off = _off()
    found = (find_hosted(slug) for slug in slugs() if slug not in off)
    return [agent for agent in found if agent is not None]


def find(slug: str) -> Agent | None:
    """Return the agent of that slug, if it is on."""
    switch = switches.find(slug)
    off = switch.state == "off" or slug in _split(conf.DISABLED_AGENTS)
    return None if off else _find_version(slug, switch.version)


def has_listed() -> bool:
    """Return whether any agent needs a grant."""
    return any(map(security.is_listed, agents()))


def slugs() -> list[str]:
    """Return the slugs of all agents that this process knows, on or off."""
    return sorted(_found.keys() | versions.list_slugs())


def find_own(slug: str) -> Agent | None:
    """Return the agent of that slug of which this process has the code."""
    return _found.get(slug)


def find_of_host(slug: str) -> Agent | None:
    """Return the agent of that slug in the host's own code. An environment of its own has other code."""
    return None if conf.ENVIRONMENT else _found.get(slug)


def list_own() -> list[Agent]:
    """Return the agents of which this process has the code, on or off, ordered by slug."""
    return [agent for _, agent in sorted(_found.items())]


def queues() -> list[str]:
    """Return the default queues of a worker: A2A_QUEUES, or the queues of all its agents and of the host's own jobs.

    In an environment of its own each version of an agent has a queue, and the jobs are left to the host's workers. It
    ignores A2A_QUEUES, which may be a copy of the host's.
    """
    if conf.ENVIRONMENT:
        return sorted(own_queues())
    configured = {name.strip() for name in str(conf.QUEUES).split(",")} - {""}
    return sorted(configured or own_queues())


def own_queues() -> set[str]:
    """Return the queues in which runs of this process's agents wait, as their classes say."""
    if conf.ENVIRONMENT:
        return {name_queue(agent.slug, agent.version) for agent in list_own()}
    return {"agents", *(agent.queue for agent in list_own() if agent.slug not in _off())}


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
        yield from security.check_visibility(agent)
        yield from forwarded_headers.check(agent)
        named = () if isinstance(agent.calls, str) else agent.calls
        if unknown := set(named) - {"*", *slugs()}:
            yield Warning(
                f"calls names agents that are not here: {', '.join(sorted(unknown))}",
                hint="An environment of its own may announce them later.",
                obj=f"{type(agent).__module__}.{type(agent).__qualname__}",
                id="a2a_tasks.W061",
            )
