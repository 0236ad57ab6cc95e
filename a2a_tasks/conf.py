"""The host's own settings: one typed attribute each, read as `A2A_<NAME>`.

Looked up at access, first in Django's settings (so tests may override), then in the environment, then the
default here. `docs/settings.md` is checked against this list.
"""

from __future__ import annotations

import os
from typing import Any, get_type_hints

from django.conf import settings as django_settings
from django.core.signals import setting_changed
from django.dispatch import receiver

__all__ = ["HostSettings", "conf", "forget", "names"]

TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


def _parse(kind: type, name: str, text: str) -> Any:
    if kind is bool:
        if text.strip().lower() not in TRUE | FALSE:
            raise ValueError(f"{name} must be 1 or 0, not {text!r}")
        return text.strip().lower() in TRUE
    if kind is str:
        return text
    try:
        number = kind(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, not {text!r}") from None
    if not 0 <= number < float("inf"):  # NaN is not either
        raise ValueError(f"{name} must not be negative, and finite, not {text!r}")
    return number


class HostSettings:
    """Every `A2A_*` setting. A wrong value raises ValueError naming it (and is a system check at start)."""

    #: The agent answering at the root of the host (its card is at `/.well-known/agent-card.json`).
    DEFAULT_AGENT: str = "demo"
    #: Agents that are off, by slug, separated by commas.
    DISABLED_AGENTS: str = "bare,strict"
    #: Base URL written into cards, e.g. `https://agents.example.com`; empty = taken from the request.
    PUBLIC_URL: str = ""
    #: May callers without credentials use the agents? "auto" = only on the embedded host.
    ANONYMOUS: str = "auto"
    #: Who runs agents: "local" (this web process), "celery" (workers) or "auto" (celery if there is a broker).
    RUNS: str = "auto"
    #: Runs one process carries at once; more wait in the table.
    RUN_SLOTS: int = 1000
    #: Seconds a run is held without a heartbeat before anybody may take it over.
    LEASE_SECONDS: float = 6.0
    #: Seconds between heartbeats; at most a third of the lease.
    BEAT_SECONDS: float = 2.0
    #: Seconds between looks at the table, for what hints missed.
    POLL_SECONDS: float = 1.0
    #: Seconds a run waits for a process that hosts its agent; then any process fails it, visibly.
    ORPHAN_SECONDS: float = 60.0
    #: How often a run is started before its task fails for good.
    MAX_ATTEMPTS: int = 3
    #: Threads for synchronous agents.
    AGENT_THREADS: int = 16
    #: Threads, each with one database connection, for the store's transactions (SQLite uses one).
    STORE_THREADS: int = 8
    #: Prepare the hot statements on PostgreSQL; 0 behind poolers that cannot carry prepared statements.
    PREPARE: bool = True
    #: Longest a client waits for the first word of an agent that may answer directly; then it gets a Task.
    FIRST_WORD_SECONDS: float = 10.0
    #: Longest a blocking send waits, in seconds; then the task is returned as it stands.
    MAX_BLOCK_SECONDS: float = 300.0
    #: Seconds between keep-alive comments on idle streams. Proxies cut at 60.
    KEEPALIVE_SECONDS: float = 15.0
    #: Seconds a process gets to drain at SIGTERM.
    DRAIN_SECONDS: float = 5.0
    #: Days for which a task is kept after its end; 0 = for ever.
    RETENTION_DAYS: float = 0.0
    #: Days for which the event log of a task is kept after its end; 0 = as long as the task.
    EVENT_RETENTION_DAYS: float = 0.0
    #: Most rows that retention removes in one transaction.
    PURGE_BATCH: int = 500
    #: Seconds the hourly purge works at the most; an hour later it goes on.
    PURGE_SECONDS: float = 300.0
    #: Largest request body, in bytes.
    MAX_BODY_BYTES: int = 4 * 1024 * 1024
    #: Deepest nesting of a JSON body.
    MAX_JSON_DEPTH: int = 64
    #: Most parts in a message.
    MAX_PARTS: int = 100
    #: Most webhooks registered for one task.
    MAX_PUSH_CONFIGS: int = 16
    #: Hours an `Idempotency-Key`, or the id of a message where its agent says so, is known again.
    IDEMPOTENCY_HOURS: float = 24.0
    #: Fernet keys for secrets at rest, newest first, separated by commas; empty = made from `SECRET_KEY`.
    SECRET_KEYS: str = ""
    #: Events of one task kept in memory by a process for its followers.
    FEED_EVENTS: int = 1024
    #: PascalCase methods without `A2A-Version: 1.0` are refused (A2A 1.0 §3.6.2 to the letter).
    STRICT_VERSION: bool = False
    #: Methods that A2A 1.0 has not, asked for with `A2A-Version: 1.0`: "reject" or "serve" (in their own dialect).
    LEGACY_METHOD_WITH_1_0: str = "reject"
    #: HTTP and gRPC codes of 1.0's errors: those of "1.0.1" or of "1.0.0".
    V10_ERROR_TABLE: str = "1.0.1"
    #: `pageSize` of a page of tasks: the number of tasks on it instead of the size asked for.
    LIST_PAGE_SIZE_RETURNS_COUNT: bool = False
    #: The draft's JSON-RPC results and stream items without the wrapper of their kind.
    DRAFT_BARE_RESULTS: bool = False
    #: A message to an ended task of 0.1, 0.0 or seed-0 begins it anew under its id.
    V01_REOPEN_TERMINAL: bool = True
    #: File bytes are base64 twice in 0.3 over HTTP+JSON, as its released peers have it.
    DOUBLE_BASE64_V03: bool = True
    #: The card at `/.well-known/agent-card.json` for who names no version: "hybrid" (1.0 and 0.3 in one), "1.0" or "0.3".
    CARD_DEFAULT: str = "hybrid"

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            return super().__getattribute__(name)
        if name not in _read:
            _read[name] = _look_up(name, super().__getattribute__(name))
        return _read[name]


_TYPES: dict[str, type] = get_type_hints(HostSettings)
#: Settings looked up already: they are read on the path of every request.
_read: dict[str, Any] = {}
conf = HostSettings()


def _look_up(name: str, default: Any) -> Any:
    key = f"A2A_{name}"
    if hasattr(django_settings, key):
        return getattr(django_settings, key)
    if key in os.environ:
        return _parse(_TYPES[name], key, os.environ[key])
    return default


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Look everything up anew: a test has overridden settings, or the environment."""
    _read.clear()


def names() -> list[str]:
    """The names of all settings, without the prefix."""
    return list(_TYPES)
