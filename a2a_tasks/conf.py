"""The host's own settings: one typed attribute each, read as `A2A_<NAME>`.

A setting is read at its first access: from Django's settings (so that tests may override it), or else from the
environment, or else from the default here. `docs/reference/settings.md` is checked against `HostSettings`; `Constants`
are for the host and its tests only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from django.conf import settings as django_settings
from django.core.signals import setting_changed
from django.dispatch import receiver

__all__ = [
    "Compatibility",
    "Constants",
    "HostSettings",
    "ProjectSettings",
    "base_url",
    "conf",
    "forget",
    "is_ours",
    "names",
    "of_settings",
    "opens_door",
    "own_path",
    "path_below",
    "project",
    "read_environment_keys",
]

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
    if not 0 <= number < float("inf"):  # false for NaN, too
        raise ValueError(f"{name} must be finite, and not negative, not {text!r}")
    return number


class Constants:
    """Measured values that operators have no reason to change.

    They are read like settings, so that tests may set them.
    """

    #: Seconds by which the issuer's clock may differ from the clock of the host.
    JWT_LEEWAY_SECONDS: float = 30.0
    #: Seconds for which an equal call of a tool, of the same caller, joins the first: clients of MCP give up, lose an
    #: answer, and let their models try again. 0 = each call is a new one.
    REPEAT_SECONDS: float = 60.0
    #: Minutes for which a name is locked after `LOGIN_FAILURES`, counted from the last attempt.
    LOGIN_WAIT_MINUTES: float = 15.0
    #: Maximum number of open calls in one gRPC server, streams included, and of calls that wait for their messages;
    #: further calls get RESOURCE_EXHAUSTED. 0 = any number.
    GRPC_CALLS: int = 5000
    #: Maximum number of requests in one process that wait for the database; further requests get 503 at once.
    MAX_WAITING: int = 1000
    #: Seconds between heartbeats; at most a third of the lease.
    BEAT_SECONDS: float = 2.0
    #: Seconds between two presence reports of a process, for the page of workers and the list of hosted agents; after
    #: three missed reports it counts as dead. 0 = none.
    PRESENCE_SECONDS: float = 5.0
    #: Maximum number of log lines kept of one attempt of a run; further lines are only counted.
    RUN_LOG_LINES: int = 1000
    #: Seconds a run waits for a process that hosts its agent. If none was seen for as long, any process of its queue
    #: fails it, visibly.
    ORPHAN_SECONDS: float = 60.0
    #: Seconds after which the host no longer waits for an agent that was told to stop: its process is killed, a thread or
    #: coroutine is abandoned.
    STOP_SECONDS: float = 8.0
    #: Seconds after which a worker exits in which an agent keeps the interpreter's lock. 0 = never.
    WATCHDOG_SECONDS: float = 60.0
    #: Maximum seconds a client waits for the first output of an agent that may answer directly; then it gets a Task. A
    #: client that streams waits KEEPALIVE_SECONDS at most.
    FIRST_WORD_SECONDS: float = 10.0
    #: Seconds after which the task of a client of another protocol that has left is cancelled, unless somebody follows it
    #: then (`Agent.on_hangup`).
    HANG_UP_SECONDS: float = 5.0
    #: Maximum number of rows that retention removes in one transaction.
    PURGE_BATCH: int = 500
    #: Maximum seconds the hourly purge works; an hour later it goes on.
    PURGE_SECONDS: float = 300.0
    #: Seconds in which a request must arrive, head and body; then it is cut off with 408. 0 = any time.
    REQUEST_SECONDS: float = 20.0
    #: Bytes of a request that extend its time limit by one second; at least 1. A client that has read its answer more
    #: slowly for A2A_REQUEST_SECONDS is cut off.
    REQUEST_BYTES_PER_SECOND: int = 4096
    #: Maximum nesting of a JSON body.
    MAX_JSON_DEPTH: int = 64
    #: Maximum number of parts in a message.
    MAX_PARTS: int = 100
    #: Maximum number of artifacts of a task; a further artifact fails the task. 0 = any number.
    MAX_ARTIFACTS: int = 10_000
    #: Maximum size of the metadata of a request, a message or a part, in bytes.
    MAX_METADATA_BYTES: int = 64 * 1024
    #: Maximum number of keys in such metadata.
    MAX_METADATA_KEYS: int = 256
    #: Maximum bytes of the headers of one request that are kept for its agent.
    FORWARDED_HEADER_BYTES: int = 8 * 1024
    #: Maximum number of extensions that a message names, and of tasks it refers to.
    MAX_REFERENCES: int = 100
    #: Minimum seconds for which the download URL of a file is valid; the maximum is twice as long.
    FILE_URL_SECONDS: float = 3600.0
    #: Maximum seconds an agent waits for a file it fetches, and of an answer's whole body or silence in `turn.http`.
    FETCH_SECONDS: float = 30.0
    #: Seconds for which the link to a page where a user hands over a secret is valid, and for which the secret is then
    #: kept for the agent.
    HANDOVER_SECONDS: float = 3600.0
    #: Maximum seconds to make a connection to a webhook, TLS included.
    WEBHOOK_CONNECT_SECONDS: float = 5.0
    #: Maximum seconds of one delivery of a webhook in all.
    WEBHOOK_SECONDS: float = 15.0
    #: Maximum number of webhook requests that one process sends at once; more wait in the table.
    WEBHOOK_SLOTS: int = 500
    #: Maximum number of webhook requests to one receiver at once; a slow or refusing receiver gets one.
    WEBHOOK_RECEIVER_SLOTS: int = 16
    #: Forms of a card that are signed: "both", since some readers leave out empty members, or "strict", only the
    #: specification's form.
    CARD_SIGNED_FORMS: str = "both"
    #: Factor of all times between attempts at a webhook; below 1 only in tests.
    WEBHOOK_TIME_SCALE: float = 1.0
    #: Maximum number of events of one task that a process keeps in memory for its followers, as far as they have 8 MiB
    #: together.
    FEED_EVENTS: int = 1024
    #: Number of wrong passwords after which a name, from one address, is locked, in the admin and for HTTP Basic.
    LOGIN_FAILURES: int = 5
    #: Maximum number of open connections to one gRPC server, the last tenth of them for addresses that have none;
    #: further ones are closed. 0 = any number.
    GRPC_CONNECTIONS: int = 1000
    #: Seconds without a heartbeat after which another process may take over a run.
    LEASE_SECONDS: float = 6.0
    #: Seconds for which a run may wait in memory; one that has to wait longer is parked.
    PARK_SECONDS: float = 5.0
    #: Seconds between polls of the table for work that no hint announced.
    POLL_SECONDS: float = 1.0
    #: Maximum number of webhooks registered for one task.
    MAX_PUSH_CONFIGS: int = 16
    #: Hours for which the host remembers an `Idempotency-Key`, or the id of a message where its agent says so.
    IDEMPOTENCY_HOURS: float = 24.0
    #: Maximum size of one value in the memory of a conversation, in bytes.
    MEMORY_MAX_BYTES: int = 1024 * 1024
    #: Maximum number of items of one list of a conversation.
    MEMORY_MAX_ITEMS: int = 10_000
    #: Maximum size of a file, in bytes, that stays inside its message or artifact; larger ones go to the storage
    #: `a2a_files`.
    FILE_INLINE_BYTES: int = 64 * 1024
    #: Maximum seconds without a byte on a stream of server-sent events; then a comment is sent. httpx, and so the
    #: Python SDKs, give up after 5, proxies after 60. 0 = no comments.
    KEEPALIVE_SECONDS: float = 4.0
    #: Seconds between pings on a gRPC connection. One that has not answered by the next one is cut. 0 = no pings.
    GRPC_PING_SECONDS: float = 15.0
    #: Maximum size of a message, in bytes, as it is stored; above A2A_MAX_BODY_BYTES it has no effect.
    MAX_MESSAGE_BYTES: int = 4 * 1024 * 1024
    #: Maximum size of a notification, in bytes; instead of a larger one the task is sent without artifacts and history.
    #: Pieces of artifacts are joined up to 256 KiB.
    WEBHOOK_MAX_BYTES: int = 1024 * 1024
    #: Maximum number of requests to the admin and the management API that a web process serves at once, each in a
    #: thread with a database connection; 64 more wait, further ones get 503.
    MAX_PAGES: int = 8
    #: The header that contains the API key.
    API_KEY_HEADER: str = "X-API-Key"
    #: Maximum seconds of a database statement; then it is cancelled and the client gets 503.
    DATABASE_SECONDS: float = 4.0
    #: Maximum seconds a blocking send waits; then the task is returned in its current state.
    MAX_BLOCK_SECONDS: float = 300.0
    #: Number of process deaths caused by a run, without progress between them, after which its task fails for good.
    MAX_ATTEMPTS: int = 3
    #: Maximum size of a file that an agent fetches, and of an answer that it reads whole (`turn.http`), in bytes.
    FETCH_BYTES: int = 16 * 1024 * 1024


class Compatibility:
    """Compatibility with peers of other versions; `docs/reference/protocol-support.md` says when to change an option."""

    #: PascalCase methods without `A2A-Version: 1.0` are refused (A2A 1.0 §3.6.2 to the letter).
    STRICT_VERSION: bool = False
    #: Methods unknown to A2A 1.0 that are called with `A2A-Version: 1.0`: "reject" or "serve" (in their own dialect).
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
    #: The card at `/.well-known/agent-card.json` for clients that name no version: "hybrid" (1.0 and 0.3 in one), "1.0"
    #: or "0.3".
    CARD_DEFAULT: str = "hybrid"


class HostSettings(Constants, Compatibility):
    """All `A2A_*` settings. A wrong value raises ValueError naming it (and is reported by a system check at start)."""

    #: The agent at the root of the host (its card is at `/.well-known/agent-card.json`). If this is not set and there
    #: is no `demo`: the first agent by name.
    DEFAULT_AGENT: str = "demo"
    #: Agents that are off, by slug, separated by commas.
    DISABLED_AGENTS: str = ""
    #: Base URL written into cards, e.g. `https://agents.example.com`, without `A2A_PREFIX`; empty = taken from the
    #: request.
    PUBLIC_URL: str = ""
    #: Further doors of the host, separated by commas: `catalog` (the AI catalog), `mcp`, `openai`, `ag-ui`. Empty =
    #: none.
    DOORS: str = ""
    #: Seconds after which a client of MCP that takes handles of tasks gets one instead of the answer.
    MCP_HANDLE_SECONDS: float = 2.0
    #: Seconds after which a client of an MCP version before 2026-07-28 is told that the agent still works; many give up
    #: after 60.
    MCP_OLD_SECONDS: float = 50.0
    #: Origins, separated by commas, whose pages may use the door `ag-ui` from the browser, such as
    #: `https://app.example.com`.
    AG_UI_ORIGINS: str = ""
    #: Headers, separated by commas, in which clients of OpenAI's API name the conversation.
    OPENAI_CONTEXT_HEADERS: str = "X-OpenWebUI-Chat-Id"
    #: Beginnings of messages, separated by commas, that the door `openai` gives an empty answer, such as prompts for
    #: titles.
    OPENAI_IGNORE: str = ""
    #: Streams of the door `openai` have the words of a failure also as text: some clients do not show errors.
    OPENAI_TELL_FAILURES: bool = True
    #: File (TOML) with the MCP servers that agents may call by `turn.mcp`. Empty = none.
    MCP_SERVERS: str = ""
    #: Path below which the host serves everything, such as `/a2a`; empty = the root. All processes need the same.
    PREFIX: str = ""
    #: Serve a playground at `/`, where users talk to agents from the browser: 1, 0, or "auto" = only on the embedded
    #: host.
    PLAYGROUND: str = "auto"
    #: Callers without credentials may use the agents: 1, 0, or "auto" = only on the embedded host, which then serves
    #: this machine alone.
    ANONYMOUS: str = "auto"
    #: Callers may authenticate with an API key (`manage.py api_keys`, or the admin).
    API_KEYS: bool = True
    #: Callers may authenticate with name and password of a Django user (HTTP Basic).
    BASIC: bool = False
    #: Issuer (`iss`) of the bearer tokens (JWT) that callers may use, such as `https://login.example.com/realms/main`;
    #: empty = no tokens.
    JWT_ISSUER: str = ""
    #: URL of the issuer's public keys (a JWKS); empty = found by OIDC discovery.
    JWT_JWKS_URL: str = ""
    #: Required audience (`aud`) of tokens; `{agent}` stands for the agent's slug. Empty = the agent's URL,
    #: `A2A_PUBLIC_URL/agents/{agent}`.
    JWT_AUDIENCE: str = ""
    #: Algorithms that tokens may be signed with, separated by commas: RS, PS or ES with 256, 384 or 512, and Ed25519.
    JWT_ALGORITHMS: str = "RS256,PS256,ES256"
    #: The claim that names the caller's tenant; tokens without it are then refused. Empty = tokens name no tenant.
    JWT_TENANT_CLAIM: str = ""
    #: Proxy for requests to the issuer: `http://user:password@host:port`.
    JWT_PROXY: str = ""
    #: File of certificate authorities (PEM) for the issuer's server, in addition to the system's.
    JWT_CA_BUNDLE: str = ""
    #: Addresses and networks of proxies, separated by commas, that verify and forward client certificates. Empty =
    #: none.
    MTLS_PEERS: str = ""
    #: The header in which proxies forward client certificates: as in RFC 9440, or PEM in percent-encoding.
    MTLS_HEADER: str = "Client-Cert"
    #: Scopes of every caller with a certificate, separated by spaces.
    MTLS_SCOPES: str = ""
    #: Revocation delay: seconds for which verified credentials and grants are cached. 0 = check every request.
    CREDENTIAL_SECONDS: float = 5.0
    #: Tasks that a caller sees, for agents that do not set this themselves: its "own", or those of its whole "tenant".
    VISIBILITY: str = "own"
    #: Callers that may use an agent that does not set this itself: "open" = every admitted caller, "listed" = only
    #: those with a grant (`manage.py grants`).
    GRANTS: str = "open"
    #: Maximum rate of requests of one caller (without credentials: of one address): "20/s", "600/m", "1000/h burst 50";
    #: without a burst, that many at once. Empty = no limit.
    RATE_PER_CALLER: str = ""
    #: Maximum rate of requests of all callers of one tenant together.
    RATE_PER_TENANT: str = ""
    #: Maximum rate of requests to one agent, by all callers together.
    RATE_PER_AGENT: str = ""
    #: Maximum rate of wrong credentials from one address; above it, only credentials that were verified recently are
    #: accepted from there.
    RATE_WRONG_CREDENTIALS: str = "5/s burst 100"
    #: Port of gRPC: of `serve_grpc`, and of its process in the stack; 0 or empty = no gRPC. `make run` takes 50051
    #: unless it is set.
    GRPC_PORT: int = 0
    #: URL of gRPC in cards, such as `https://agents.example.com`; empty = cards do not name gRPC. `host:port` is read
    #: as `https://host:port` (deprecated).
    GRPC_URL: str = ""
    #: File with the certificate chain of the gRPC server (PEM); empty = no TLS.
    GRPC_CERTIFICATE: str = ""
    #: File with the key of `A2A_GRPC_CERTIFICATE` (PEM); empty = the key is in the same file.
    GRPC_KEY: str = ""
    #: File of certificate authorities (PEM) for the client certificates that gRPC then requires; empty = no certificate
    #: is required.
    GRPC_CLIENT_CA: str = ""
    #: Maximum number of gRPC connections from one address (IPv6: from one /64). 0 = any number: where all come through
    #: one proxy or a service mesh.
    GRPC_CONNECTIONS_PER_ADDRESS: int = 500
    #: Name of this installation in the header of the console, such as `production`: red if it begins with `prod`,
    #: amber with `stag`, else blue. Empty = none.
    ENVIRONMENT_NAME: str = ""
    #: Processes that run agents: "local" (this web process), "celery" (workers) or "auto" (celery if there is a
    #: broker).
    RUNS: str = "auto"
    #: Queues that workers take from without `-Q`, separated by commas; empty = every queue that an agent names.
    QUEUES: str = ""
    #: Name of the environment of a worker that announces its agents, such as `crewai`. Empty = the worker has the
    #: host's own agents.
    ENVIRONMENT: str = ""
    #: Secret with which this environment signs its announcements, of at least 32 characters; empty = unsigned.
    ENVIRONMENT_KEY: str = ""
    #: Secrets of the environments whose agents are served: `crewai=secret,adk=secret`; empty = agents of every
    #: environment that can write to the database.
    ENVIRONMENT_KEYS: str = ""
    #: The agents that each environment may announce: `crewai=writer editor,adk=*` (slugs, `*` = all).
    ENVIRONMENT_AGENTS: str = ""
    #: Maximum number of runs in one process, nine tenths of them for a single tenant; more wait in the table.
    RUN_SLOTS: int = 1200
    #: Maximum number of runs in one process for one tenant (without tenants: for one caller). 0 = nine tenths.
    RUN_SLOTS_PER_TENANT: int = 0
    #: Maximum number of unfinished runs of one tenant (without tenants: of one caller); at the limit its sends get 429.
    #: 0 = any number.
    MAX_UNFINISHED_PER_TENANT: int = 0
    #: Maximum depth of calls of agents by agents (`turn.call`): 1 = called agents call no others.
    CALL_DEPTH: int = 8
    #: Maximum number of agents that one turn may call, each call counted.
    CALLS_PER_TURN: int = 100
    #: Maximum number of tasks of agents that call each other, with the first one.
    TREE_TASKS: int = 1000
    #: Maximum number of messages to one task that wait or are worked on; at the limit its sends get 429. 0 = any number.
    MAX_UNFINISHED_PER_TASK: int = 100
    #: Maximum number of open streams of one tenant (without tenants: of one caller) in one web process; further ones
    #: get 429. 0 = any number.
    MAX_STREAMS_PER_TENANT: int = 0
    #: Maximum number of runs that wait in one queue; at the limit sends to its agents get 503. 0 = any number.
    MAX_QUEUED: int = 0
    #: Name of the deployed code on the page of workers, such as a tag or a commit; empty = the version of the host.
    RELEASE: str = ""
    #: Format of the log on stderr: "text", or "json" = one JSON object a line.
    LOG_FORMAT: str = "text"
    #: Minimum level of log lines that are kept with the run whose agent wrote them: "DEBUG", "INFO", "WARNING",
    #: "ERROR", or "OFF".
    RUN_LOG_LEVEL: str = "INFO"
    #: Threads for synchronous agents.
    AGENT_THREADS: int = 16
    #: Processes for agents with `runs_in = "process"`, started when needed; 0 = one per core.
    AGENT_PROCESSES: int = 0
    #: Threads, each with one database connection, for the store's transactions (SQLite uses one).
    STORE_THREADS: int = 8
    #: Prepare frequent statements on PostgreSQL, and limit the session; 0 behind a transaction pool (PgBouncer).
    PREPARE: bool = True
    #: Seconds that a process drains after SIGTERM.
    DRAIN_SECONDS: float = 5.0
    #: Days for which a task is kept after its end; 0 = for ever.
    RETENTION_DAYS: float = 0.0
    #: Days for which the event log of a task is kept after its end; 0 = as long as the task.
    EVENT_RETENTION_DAYS: float = 0.0
    #: Days for which entries of the audit log are kept; 0 = for ever.
    AUDIT_RETENTION_DAYS: float = 0.0
    #: Days for which reports of the usage of models are kept; 0 = for ever.
    USAGE_RETENTION_DAYS: float = 0.0
    #: Prices of models, as JSON, per million tokens and per request: {"gpt-4o*": {"input": 2.5, "output": 10}}. Models
    #: that are not named have the prices of the package genai-prices, if it is installed (extra `prices`).
    PRICES: str = ""
    #: Secrets that seal the audit log, of at least 32 characters, newest first, separated by commas; empty = made from
    #: `SECRET_KEY`.
    AUDIT_KEYS: str = ""
    #: Maximum size of a request body, and of a gRPC message, in bytes.
    MAX_BODY_BYTES: int = 4 * 1024 * 1024
    #: Maximum number of bytes of answers in one process that clients have not read yet. No connection gets more of
    #: them than is left for others. 0 = any number.
    MAX_UNREAD_BYTES: int = 256 * 1024 * 1024
    #: Maximum size of all artifacts of a run, and of each of its messages (at least 1 MiB), in bytes as they are
    #: stored, large files excluded; a larger output fails the task. 0 = any size.
    MAX_ARTIFACT_BYTES: int = 64 * 1024 * 1024
    #: Access to download URLs: "signed" (anyone who has the URL) or "authenticated" (only the caller it was made for,
    #: with credentials).
    FILE_URLS: str = "signed"
    #: Agents may fetch URLs of files from this machine's own loopback, also without TLS. For development.
    FETCH_ALLOW_PRIVATE: bool = False
    #: Networks and host names, separated by commas, that agents may fetch files from although they are not public.
    FETCH_ALLOW_NETWORKS: str = ""
    #: Agents may also fetch files by http.
    FETCH_ALLOW_HTTP: bool = False
    #: Proxy through which agents fetch files, and which resolves their host names: `http://user:password@host:port`.
    FETCH_PROXY: str = ""
    #: File of certificate authorities (PEM) for servers of files, in addition to the system's.
    FETCH_CA_BUNDLE: str = ""
    #: Maximum number of webhooks for unfinished tasks of one caller (where the tenant shares its tasks: of the tenant).
    #: 0 = any number.
    MAX_PUSH_CONFIGS_PER_CALLER: int = 0
    #: Webhooks may be at this machine's own loopback, also without TLS, at any port but a service's. For development.
    WEBHOOK_ALLOW_PRIVATE: bool = False
    #: Networks (`10.1.0.0/16`) and host names (`hooks.corp`, `.corp` = all below), separated by commas, where webhooks
    #: may be although they are not public.
    WEBHOOK_ALLOW_NETWORKS: str = ""
    #: Webhooks may also have http URLs: then the network in between can read them.
    WEBHOOK_ALLOW_HTTP: bool = False
    #: Ports of webhooks, and ranges; ports of well-known services such as databases are excluded from ranges.
    WEBHOOK_PORTS: str = "80,443,1024-65535"
    #: Proxy through which webhooks are sent, and which resolves their host names: `http://user:password@host:port`.
    WEBHOOK_PROXY: str = ""
    #: File of certificate authorities (PEM) for webhooks, in addition to the system's.
    WEBHOOK_CA_BUNDLE: str = ""
    #: Addresses and networks, separated by commas, that may read `/metrics` without credentials. Others need the scope
    #: `metrics`.
    METRICS_PEERS: str = ""
    #: Address where a worker, a pusher or a gRPC process serves its own counters without authentication, `host:port`;
    #: empty = nowhere.
    METRICS_LISTEN: str = ""
    #: Send traces to the collector that the OTEL_EXPORTER_OTLP_* variables name, as OTLP over HTTP; needs the extra
    #: `otel`.
    TRACES: bool = False
    #: Traces contain messages, results and the names of callers; credentials in them are redacted as in log lines.
    TRACE_CONTENT: bool = False
    #: File that a worker or beat touches every five seconds as long as it works, for health checks of containers;
    #: empty = none.
    HEARTBEAT_FILE: str = ""
    #: Minutes without output after which a run counts as stuck for operators.
    SILENT_MINUTES: float = 5.0
    #: Days for which settled deliveries of webhooks are kept, with their attempts; 0 = as long as the task.
    WEBHOOK_RETENTION_DAYS: float = 30.0
    #: Fernet keys for secrets at rest, newest first, separated by commas; empty = made from `SECRET_KEY`.
    SECRET_KEYS: str = ""
    #: Secrets that webhook signatures are made from (`whsec_...`), newest first, separated by commas; empty = made from `SECRET_KEY`.
    WEBHOOK_SECRETS: str = ""
    #: Sign agent cards, if `A2A_PUBLIC_URL` is set: without it, cards contain URLs from the client's request.
    SIGN_CARDS: bool = True
    #: Keys that sign cards, newest first: files of them (JWK Sets or PEM), separated by commas, or a JWK Set itself; empty = made from `SECRET_KEY`.
    CARD_KEYS: str = ""


_TYPES: dict[str, type] = get_type_hints(HostSettings)
#: Numeric settings whose environment variable may be empty: then the default applies.
_MAY_BE_EMPTY = frozenset({"GRPC_PORT"})


def _look_up(name: str) -> Any:
    default = getattr(HostSettings, name)
    key = f"A2A_{name}"
    if hasattr(django_settings, key):
        return getattr(django_settings, key)
    if key in os.environ and (os.environ[key] or name not in _MAY_BE_EMPTY):
        return _parse(_TYPES[name], key, os.environ[key])
    return default


def base_url(site: str = "") -> str:
    """Return the base URL of the host: A2A_PUBLIC_URL or else the site, and A2A_PREFIX; without a slash at its end."""
    return f"{(str(conf.PUBLIC_URL) or site).rstrip('/')}{conf.PREFIX}"


def opens_door(name: str) -> bool:
    """Return whether A2A_DOORS names what is to be served."""
    return name in (door.strip() for door in str(conf.DOORS).split(","))


def is_ours(path: str) -> bool:
    """Return whether a path of the site is the host's: A2A_PREFIX, or below it."""
    return own_path(path) is not None


def own_path(path: str) -> str | None:
    """Return the part of a path of the site below A2A_PREFIX, `/` at least; None for a path that is not the host's."""
    prefix = conf.PREFIX
    if prefix and path != prefix and not path.startswith(f"{prefix}/"):
        return None
    return path.removeprefix(prefix) or "/"


def path_below(path: str) -> str:
    """Return the part of the host's path below A2A_PREFIX, `/` at least."""
    return path.removeprefix(conf.PREFIX) or "/"


def read_environment_keys() -> dict[str, str]:
    """Return the secret of each environment in A2A_ENVIRONMENT_KEYS; an empty one fits no signature."""
    return _read_pairs(conf.ENVIRONMENT_KEYS)


def may_announce(environment: str, slug: str) -> bool:
    """Return whether A2A_ENVIRONMENT_AGENTS lets the environment announce the agent."""
    if not str(conf.ENVIRONMENT_AGENTS).strip() and not str(conf.ENVIRONMENT_KEYS).strip():
        return True
    slugs = list_announced(environment)
    return slug in slugs or "*" in slugs


def list_announced(environment: str) -> list[str]:
    """Return the slugs that A2A_ENVIRONMENT_AGENTS has for the environment; `*` stands for all."""
    return _read_pairs(conf.ENVIRONMENT_AGENTS).get(environment, "").split()


def _read_pairs(text: object) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in str(text).split(","))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


class ProjectSettings:
    """Settings of the Django project that the host reads, with their values in a project that has none."""

    #: The project is the host (`a2a_project.settings`), and nothing else.
    A2A_OWN_PROJECT: bool = False
    #: The host is one process, without servers.
    A2A_EMBEDDED: bool = False
    #: URL of Redis; empty = one process, hints in memory.
    REDIS_URL: str = ""
    #: URL of the broker of the host's own Celery application; empty = runs are started in the web process.
    A2A_CELERY_BROKER_URL: str = ""
    #: The directory for files, unless STORAGES has `a2a_files`.
    VAR_DIR: Path = Path("var")
    #: Addresses and networks of proxies whose X-Forwarded-For and -Proto are believed.
    TRUSTED_PROXIES: Sequence[str] = ()
    #: SECRET_KEY was generated by this machine.
    SECRET_KEY_IS_OURS: bool = False
    #: The version on the page of workers, unless A2A_RELEASE is set.
    A2A_HOST_VERSION: str = ""


class _HostReader:
    """Looks a setting of the host up at its first read, and keeps it as a plain attribute: every request reads some."""

    def __getattr__(self, name: str) -> Any:
        value = _look_up(name)
        setattr(self, name, value)
        return value


class _ProjectReader:
    """Reads a setting of the Django project in the same way."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(django_settings, name, getattr(ProjectSettings, name))
        setattr(self, name, value)
        return value


_C = TypeVar("_C", bound=Any)
_caches: list[Any] = []
conf = cast("HostSettings", _HostReader())
project = cast("ProjectSettings", _ProjectReader())


def of_settings(cached: _C) -> _C:
    """Let a cache of what follows from settings be cleared with them: `@of_settings` above `@functools.cache`."""
    _caches.append(cached)
    return cached


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Clear what was read: a test has overridden settings or the environment."""
    vars(conf).clear()
    vars(project).clear()
    for cached in _caches:
        cached.cache_clear()


def names() -> list[str]:
    """Return the names of all settings and constants, without the prefix."""
    return list(_TYPES)
