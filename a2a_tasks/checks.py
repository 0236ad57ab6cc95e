"""System checks of the host: `python manage.py check`. Each names the setting or agent and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register  # noqa: A004
from django.core.files.storage import storages
from django.db import DatabaseError

from a2a_tasks import failpoints
from a2a_tasks.agents import registry
from a2a_tasks.agents.cards import card_of
from a2a_tasks.agents.http import guard
from a2a_tasks.agents.mcp import find_flaws
from a2a_tasks.agents.security import GRANTS, VISIBILITIES
from a2a_tasks.audit.keys import MIN_LENGTH, keys
from a2a_tasks.conf import base_url, conf, list_announced, names, project
from a2a_tasks.guests import DOORS, list_guests
from a2a_tasks.outbound import make_tls_context
from a2a_tasks.signatures import ring
from a2a_tasks.store import sealed_columns
from a2a_tasks.store.files import STORAGE
from a2a_tasks.store.prices import read_prices

__all__ = [
    "check_agents",
    "check_audit_keys",
    "check_audit_keys_of_production",
    "check_card_keys",
    "check_card_keys_of_production",
    "check_files",
    "check_files_of_production",
    "check_sealed_secrets",
    "check_secret_key_of_production",
    "check_settings",
]

#: Settings with a fixed set of allowed values.
CHOICES = {
    "CARD_DEFAULT": ("hybrid", "1.0", "0.3"),
    "CARD_SIGNED_FORMS": ("both", "strict"),
    "FILE_URLS": ("signed", "authenticated"),
    "GRANTS": GRANTS,
    "LEGACY_METHOD_WITH_1_0": ("reject", "serve"),
    "LOG_FORMAT": ("text", "json"),
    "RUN_LOG_LEVEL": ("DEBUG", "INFO", "WARNING", "ERROR", "OFF"),
    "V10_ERROR_TABLE": ("1.0.1", "1.0.0"),
    "VISIBILITY": VISIBILITIES,
}


_GRPC_URL = re.compile(r"https?://[^/?#@\s]+/?")


@register()
def check_agents(**_: Any) -> Iterable[CheckMessage]:
    """Report mistakes in agents: clashing slugs, no skills, bad media types."""
    return list(registry.check())


@register()
def check_settings(**_: Any) -> Iterable[CheckMessage]:
    """Report mistakes in the environment."""
    unreadable = list(_check_values())
    if unreadable:
        return unreadable
    rules = (
        *(
            _check_consistency,
            _check_sessions,
            _check_queues,
            _check_request_rate,
            _check_environments,
        ),
        *(_check_prices, _check_traces, _check_grpc_url, _check_doors, _check_mcp_servers),
    )
    return [message for rule in rules for message in rule()]


@register()
def check_card_keys(**_: Any) -> Iterable[CheckMessage]:
    """Report invalid card keys and cards that cannot be signed, before the first card is signed."""
    try:
        ring.check_keys()
    except ValueError as fault:
        hint = "Make one: python manage.py card_keys make FILE"
        return [Error(str(fault), hint=hint, id="a2a_tasks.E017")]
    return [*_check_unused_keys(), *_check_cards()]


@register()
def check_audit_keys(**_: Any) -> Iterable[CheckMessage]:
    """Report keys too short to seal with, before the first entry is sealed."""
    try:
        keys()
    except ValueError as fault:
        hint = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
        return [Error(str(fault), hint=f"Make one: {hint}", id="a2a_tasks.E048")]
    return []


@register(deploy=True)
def check_audit_keys_of_production(**_: Any) -> Iterable[CheckMessage]:
    """Report an audit log that is sealed with a key derived from SECRET_KEY."""
    if conf.AUDIT_KEYS:
        return []
    return [
        Warning(
            "The audit log is sealed with a key made from SECRET_KEY",
            hint="Set A2A_AUDIT_KEYS. Then SECRET_KEY can be changed, and does not suffice to rewrite the log.",
            id="a2a_tasks.W040",
        )
    ]


@register(deploy=True)
def check_sealed_secrets(**_: Any) -> Iterable[CheckMessage]:
    """Report secrets in the database that no current key opens: `manage.py check --deploy`."""
    for column in sealed_columns.columns():
        try:
            lost = sealed_columns.unreadable(column)
        except DatabaseError:
            yield Info(
                "the database could not be read to check its secrets",
                hint="Repeat the check where the database can be reached and is migrated.",
                id="a2a_tasks.I045",
            )
            return
        except ValueError:  # invalid keys have a check of their own
            return
        if lost:
            yield Warning(
                f"{lost} {column.name} can be opened with no key: they were sealed with another one",
                hint="Name the former key in SECRET_KEY_FALLBACKS or A2A_SECRET_KEYS, then: python manage.py reseal",
                id="a2a_tasks.W045",
            )


@register(deploy=True)
def check_card_keys_of_production(**_: Any) -> Iterable[CheckMessage]:
    """Report cards signed with a derived key instead of configured keys: `manage.py check --deploy`."""
    if conf.SIGN_CARDS and conf.PUBLIC_URL and not conf.CARD_KEYS.strip():
        yield Warning(
            "cards are signed with a key made from SECRET_KEY: its owners can sign cards, and a change of it changes the key",
            hint="python manage.py card_keys make FILE, and name the file in A2A_CARD_KEYS.",
            id="a2a_tasks.W014",
        )


@register()
def check_files(**_: Any) -> Iterable[CheckMessage]:
    """Report an unknown file storage and invalid settings for fetching files."""
    try:
        storages[STORAGE]
    except Exception as fault:  # noqa: BLE001 - a backend may raise anything while it is made
        hint = "FILE_STORAGE names its class, FILE_STORAGE_OPTIONS has its arguments as JSON."
        yield Error(f"the storage {STORAGE!r}: {fault}", hint=hint, id="a2a_tasks.E031")
    try:
        guard()
        make_tls_context(conf.FETCH_CA_BUNDLE)
    except (ValueError, OSError) as fault:
        yield Error(f"A2A_FETCH_*: {fault}", id="a2a_tasks.E032")


@register(deploy=True)
def check_files_of_production(**_: Any) -> Iterable[CheckMessage]:
    """Report agents that may call this machine: `manage.py check --deploy`."""
    if conf.FETCH_ALLOW_PRIVATE:
        yield Warning(
            "A2A_FETCH_ALLOW_PRIVATE is set: clients can make this machine call itself by the URL of a file",
            hint="It is for development. Unset it unless all clients are trusted.",
            id="a2a_tasks.W033",
        )


@register(deploy=True)
def check_secret_key_of_production(**_: Any) -> Iterable[CheckMessage]:
    """Report a generated SECRET_KEY, whose seals and signatures are valid on this machine alone: `check --deploy`."""
    if project.SECRET_KEY_IS_OURS and not project.A2A_EMBEDDED:
        yield Warning(
            "SECRET_KEY is not set: this machine has generated one, and every other machine generates another",
            hint="Set the same key for all processes of the host.",
            id="a2a_tasks.W031",
        )


def _check_unused_keys() -> Iterable[CheckMessage]:
    if conf.CARD_KEYS.strip() and not ring.ring():
        yield Warning(
            "A2A_CARD_KEYS is set, but cards are not signed",
            hint="Set A2A_PUBLIC_URL, since URLs from a client's request are not signed. Or unset A2A_CARD_KEYS.",
            id="a2a_tasks.W013",
        )


def _check_cards() -> Iterable[CheckMessage]:
    """Report cards with values that have no canonical form, of agents without other serious mistakes."""
    well = (agent for agent in registry.agents() if not any(m.is_serious() for m in agent.check()))
    for agent in well:
        try:
            ring.seal().on(card_of(agent, base_url()), "v10", base_url())
        except ValueError as flaw:
            where = f"{type(agent).__module__}.{type(agent).__qualname__}"
            hint = "The params of its extensions: integers up to 2^53, and texts in Unicode."
            yield Error(
                f"the card cannot be signed: {flaw}", hint=hint, obj=where, id="a2a_tasks.E018"
            )


def _check_values() -> Iterable[CheckMessage]:
    for name in names():
        try:
            getattr(conf, name)
        except ValueError as fault:
            yield Error(f"A2A_{name}: {fault}", id="a2a_tasks.E010")


def _check_request_rate() -> Iterable[CheckMessage]:
    if not conf.REQUEST_BYTES_PER_SECOND:
        yield Error("A2A_REQUEST_BYTES_PER_SECOND must be at least 1", id="a2a_tasks.E043")


def _check_grpc_url() -> Iterable[CheckMessage]:
    named = str(conf.GRPC_URL).strip()
    hint = "Write it as cards show it: A2A_GRPC_URL=https://agents.example.com"
    if named and "://" not in named:
        what = f"A2A_GRPC_URL has no scheme, so cards name https://{named}"
        yield Warning(what, hint=hint, id="a2a_tasks.W059")
    elif named and not _GRPC_URL.fullmatch(named):
        yield Error("A2A_GRPC_URL is not the URL of a server", hint=hint, id="a2a_tasks.E059")


def _check_doors() -> Iterable[CheckMessage]:
    named = {door.strip() for door in str(conf.DOORS).split(",")} - {""}
    doors = list_guests(DOORS).keys()
    if unknown := sorted(named - doors):
        there = ", ".join(sorted(doors))
        yield Error(f"A2A_DOORS has {', '.join(unknown)}; there is: {there}", id="a2a_tasks.E062")
    elif "catalog" in named and not conf.PUBLIC_URL and not project.A2A_EMBEDDED:
        hint = "Set A2A_PUBLIC_URL: a catalog names its agents by the domain of the host."
        yield Warning("The AI catalog is not served", hint=hint, id="a2a_tasks.W062")
    if "mcp" in named and find_spec("mcp") is None:
        hint = "pip install 'a2a-host[mcp]', or install requirements-mcp.txt."
        yield Error("A2A_DOORS has mcp, whose library is missing", hint=hint, id="a2a_tasks.E064")


def _check_mcp_servers() -> Iterable[CheckMessage]:
    for flaw in find_flaws():
        hint = "docs/agents/resources.md has an example of the file."
        yield Error(f"A2A_MCP_SERVERS: {flaw}", hint=hint, id="a2a_tasks.E065")


def _check_queues() -> Iterable[CheckMessage]:
    # A worker of an environment takes from the queues of its versions alone.
    for agent in registry.agents() if conf.QUEUES and not conf.ENVIRONMENT else ():
        if agent.queue not in registry.queues():
            yield Warning(
                f"the agent {agent.slug} waits in the queue {agent.queue!r}, which is not in A2A_QUEUES",
                hint="Add the queue there, or start workers of it with -Q. Without them its tasks wait for ever.",
                id="a2a_tasks.W044",
            )


def _check_environments() -> Iterable[CheckMessage]:
    pairs = [pair.partition("=") for pair in str(conf.ENVIRONMENT_KEYS).split(",")]
    unfit = [name for name, _, key in pairs if not name.strip() or len(key.strip()) < MIN_LENGTH]
    if str(conf.ENVIRONMENT_KEYS).strip() and unfit:
        yield Error(
            f"A2A_ENVIRONMENT_KEYS has no secret of at least {MIN_LENGTH} characters for {unfit[0].strip()!r}",
            hint="crewai=SECRET,adk=SECRET. The agents of an environment without a secret are not served.",
            id="a2a_tasks.E054",
        )
        return
    named = {name.strip() for name, _, _ in pairs} - {""}
    silent = [name for name in sorted(named) if not list_announced(name)]
    if silent:
        yield Warning(
            f"A2A_ENVIRONMENT_AGENTS names no agent for the environment {silent[0]!r}, so none of its agents is served",
            hint=f"{silent[0]}=writer editor, or {silent[0]}=* for all agents.",
            id="a2a_tasks.W058",
        )


def _check_traces() -> Iterable[CheckMessage]:
    if conf.TRACES and find_spec("opentelemetry.sdk") is None:
        yield Warning(
            "A2A_TRACES is set, but the packages for traces are missing",
            hint="pip install 'a2a-host[otel]', or install requirements-otel.txt.",
            id="a2a_tasks.W023",
        )


def _check_prices() -> Iterable[CheckMessage]:
    try:
        read_prices(conf.PRICES)
    except ValueError as fault:
        yield Error(
            f"A2A_PRICES: {fault}",
            hint='{"gpt-4o*": {"input": 2.5, "output": 10}}, for a million tokens.',
            id="a2a_tasks.E057",
        )


def _check_consistency() -> Iterable[CheckMessage]:
    if not 0 < conf.BEAT_SECONDS * 3 <= conf.LEASE_SECONDS:
        yield Error(
            "A2A_BEAT_SECONDS must be above 0, and at most a third of A2A_LEASE_SECONDS",
            hint="One lost heartbeat must not cost a run.",
            id="a2a_tasks.E011",
        )
    if conf.RUNS not in {"auto", "local", "celery"}:
        yield Error("A2A_RUNS must be auto, local or celery", id="a2a_tasks.E012")
    for name, choices in CHOICES.items():
        if getattr(conf, name) not in choices:
            yield Error(f"A2A_{name} must be one of {', '.join(choices)}", id="a2a_tasks.E015")
    if conf.RUNS == "celery" and not project.A2A_CELERY_BROKER_URL:
        yield Error("A2A_RUNS=celery needs CELERY_BROKER_URL", id="a2a_tasks.E013")
    if project.A2A_CELERY_BROKER_URL and not project.REDIS_URL:
        yield Warning(
            "workers without REDIS_URL: streams follow them by polling only",
            hint="Set REDIS_URL, so that hints cross processes at once.",
            id="a2a_tasks.W010",
        )
    if registry.agents() and registry.find(conf.DEFAULT_AGENT) is None:
        yield Warning(
            f"A2A_DEFAULT_AGENT is {conf.DEFAULT_AGENT!r}, but no such agent is on",
            hint="The host has no card at its root.",
            id="a2a_tasks.W011",
        )
    if failpoints.ON:
        yield Warning(
            "A2A_FAILPOINTS is set: processes of this host may be killed on purpose",
            hint="It is only for the fault lab. Unset it.",
            id="a2a_tasks.W012",
        )


def _check_sessions() -> Iterable[CheckMessage]:
    database = settings.DATABASES["default"]
    if database.get("CONN_MAX_AGE"):
        yield Error("CONN_MAX_AGE must be 0 under ASGI", id="a2a_tasks.E014")
    if database.get("OPTIONS", {}).get("pool"):
        yield Error(
            "Django's pool of connections passes on sessions with the time limits of this host",
            hint="Remove `pool` from the OPTIONS of the database. For fewer connections, use PgBouncer.",
            id="a2a_tasks.E066",
        )
