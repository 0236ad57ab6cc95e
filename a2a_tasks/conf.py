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

    #: The agent answering at the root of the host (its card is at `/.well-known/agent-card.json`). If it is not set and there is no `demo`: the first by name.
    DEFAULT_AGENT: str = "demo"
    #: Agents that are off, by slug, separated by commas.
    DISABLED_AGENTS: str = ""
    #: Base URL written into cards, e.g. `https://agents.example.com`; empty = taken from the request.
    PUBLIC_URL: str = ""
    #: Is there a playground at `/`, where people talk to agents from the browser? "auto" = only on the embedded host.
    PLAYGROUND: str = "auto"
    #: May callers without credentials use the agents? "auto" = only on the embedded host.
    ANONYMOUS: str = "auto"
    #: Callers may show an API key (`manage.py api_keys`, or the admin).
    API_KEYS: bool = True
    #: The header that API keys come in.
    API_KEY_HEADER: str = "X-API-Key"
    #: Callers may show name and password of a Django user (HTTP Basic).
    BASIC: bool = False
    #: Issuer (`iss`) of the bearer tokens (JWT) that callers may show, such as `https://login.example.com/realms/main`; empty = no tokens.
    JWT_ISSUER: str = ""
    #: Where the issuer's public keys are (a JWKS); empty = found by OIDC discovery.
    JWT_JWKS_URL: str = ""
    #: What tokens must be made out to (`aud`); `{agent}` stands for the agent's slug. Empty = the agent's URL, `A2A_PUBLIC_URL/agents/{agent}`.
    JWT_AUDIENCE: str = ""
    #: Algorithms that tokens may be signed with, separated by commas: RS, PS or ES with 256, 384 or 512, and Ed25519.
    JWT_ALGORITHMS: str = "RS256,PS256,ES256"
    #: Seconds by which the issuer's clock may differ from ours.
    JWT_LEEWAY_SECONDS: float = 30.0
    #: The claim that names the caller's tenant; tokens without it are then refused. Empty = tokens name none.
    JWT_TENANT_CLAIM: str = ""
    #: Proxy that the issuer is asked by: `http://user:password@host:port`; the environment's are not used.
    JWT_PROXY: str = ""
    #: File of certificate authorities (PEM) that vouch for the issuer's server, beside the system's.
    JWT_CA_BUNDLE: str = ""
    #: Addresses and networks of proxies, separated by commas, that have verified a client's certificate (mutual TLS) when they send it on. Empty = no certificates.
    MTLS_PEERS: str = ""
    #: The header in which those proxies send the certificate: as in RFC 9440, or PEM in percent-encoding.
    MTLS_HEADER: str = "Client-Cert"
    #: Scopes of every caller with a certificate, separated by spaces.
    MTLS_SCOPES: str = ""
    #: Seconds for which credentials and grants are believed without another look: so long what was revoked still opens. 0 = look every time.
    CREDENTIAL_SECONDS: float = 5.0
    #: Wrong passwords after which a name, from an address, has to wait, in the admin and by HTTP Basic.
    LOGIN_FAILURES: int = 5
    #: Minutes for which it has to, after the last one that was tried.
    LOGIN_WAIT_MINUTES: float = 15.0
    #: Whose tasks a caller sees, of agents that do not say it themselves: its "own", or those of its whole "tenant".
    VISIBILITY: str = "own"
    #: Who may use agents that do not say it themselves: "open" = whoever is let in, "listed" = those alone who were granted it (`manage.py grants`); to others such an agent does not exist.
    GRANTS: str = "open"
    #: How often one caller may come (anonymous ones: one address): "20/s", "600/m", "1000/h burst 50"; without a burst, that many at once. Empty = as often as it likes.
    RATE_PER_CALLER: str = ""
    #: How often all callers of one tenant may come, together.
    RATE_PER_TENANT: str = ""
    #: How often one agent may be asked, by all callers together.
    RATE_PER_AGENT: str = ""
    #: How often one address may show wrong credentials; then those that are not known already are not looked at. Behind a proxy set `TRUSTED_PROXIES`.
    RATE_WRONG_CREDENTIALS: str = "5/s burst 100"
    #: Port of gRPC: of `serve_grpc`, of its process in the stack, and of the embedded host; 0 = no gRPC there.
    GRPC_PORT: int = 0
    #: What cards call the way in by gRPC, `host:port`; empty = the host's own name with `A2A_GRPC_PORT`, if there is one.
    GRPC_URL: str = ""
    #: File with the certificate of the gRPC server and those above it (PEM); empty = in clear.
    GRPC_CERTIFICATE: str = ""
    #: File with the key of that certificate (PEM); empty = it is in the same file.
    GRPC_KEY: str = ""
    #: File of certificate authorities (PEM) whose certificates every client of gRPC must show; empty = none is asked for.
    GRPC_CLIENT_CA: str = ""
    #: Calls that may be open at once in one gRPC server, streams among them; the next ones get RESOURCE_EXHAUSTED. 0 = any number.
    GRPC_CALLS: int = 5000
    #: Connections that may be open at once to one gRPC server, the last tenth of them for addresses that have none; the next ones are closed. 0 = any number.
    GRPC_CONNECTIONS: int = 1000
    #: How many of them may be of one address, of IPv6 of one /64. 0 = any number: where all come through one proxy or a service mesh.
    GRPC_CONNECTIONS_PER_ADDRESS: int = 500
    #: Who runs agents: "local" (this web process), "celery" (workers) or "auto" (celery if there is a broker).
    RUNS: str = "auto"
    #: Queues that workers take from if `-Q` does not say it, separated by commas; empty = every queue that an agent names.
    QUEUES: str = ""
    #: Runs one process carries at once, nine tenths of them for one tenant that is alone; more wait in the table.
    RUN_SLOTS: int = 1200
    #: How many of them may be one tenant's (without tenants: one caller's) at most; the others stay free for the rest. 0 = no bound but that a tenth stays free.
    RUN_SLOTS_PER_TENANT: int = 0
    #: Runs of one tenant (without tenants: of one caller) that may wait or go on; then its sends get 429 until there are fewer. 0 = any number.
    MAX_UNFINISHED_PER_TENANT: int = 0
    #: Streams of one tenant (without tenants: of one caller) that may be open in one web process; then it gets 429. 0 = any number.
    MAX_STREAMS_PER_TENANT: int = 0
    #: Runs that may wait in one queue; then sends to its agents get 503 until there are fewer. 0 = any number.
    MAX_QUEUED: int = 0
    #: Pages of the admin and requests of the management API that a web process works on at once, each in a thread with a connection to the database; 64 more wait, the next gets 503.
    MAX_PAGES: int = 8
    #: Requests of one process that may wait for the database at once; the next gets 503 at once.
    MAX_WAITING: int = 1000
    #: Seconds a run is held without a heartbeat before anybody may take it over.
    LEASE_SECONDS: float = 6.0
    #: Seconds between heartbeats; at most a third of the lease.
    BEAT_SECONDS: float = 2.0
    #: Seconds between looks at the table, for what hints missed.
    POLL_SECONDS: float = 1.0
    #: Seconds between two signs of life of a process, for the page of workers, and to know who hosts an agent; after three that are missing it counts as dead. 0 = none.
    PRESENCE_SECONDS: float = 5.0
    #: What this code is called on the page of workers, such as a tag or a commit; empty = the version of the host.
    RELEASE: str = ""
    #: Lines of the log from here up are kept with the run whose agent wrote them: "DEBUG", "INFO", "WARNING", "ERROR", or "OFF".
    RUN_LOG_LEVEL: str = "INFO"
    #: Most lines kept of one attempt of a run; of more, their number.
    RUN_LOG_LINES: int = 1000
    #: Seconds a run waits for a process that hosts its agent. If none was seen for as long, any process of its queue fails it, visibly.
    ORPHAN_SECONDS: float = 60.0
    #: Deaths through its own fault, without progress between them, after which the task of a run fails for good.
    MAX_ATTEMPTS: int = 3
    #: Threads for synchronous agents.
    AGENT_THREADS: int = 16
    #: Processes for agents that run in one (`runs_in = "process"`), begun when needed; 0 = one a core.
    AGENT_PROCESSES: int = 0
    #: Seconds until an agent that was told to stop is done without; after half of them it is forced.
    STOP_SECONDS: float = 8.0
    #: Threads, each with one database connection, for the store's transactions (SQLite uses one).
    STORE_THREADS: int = 8
    #: Seconds a worker's bell may be silent although the broker answers; then it connects anew, then ends. It also ends if an agent keeps the interpreter to itself for so long. 0 = never.
    WATCHDOG_SECONDS: float = 60.0
    #: Longest a statement waits for its answer, in seconds; then it is cancelled and the client told to come again (503).
    DATABASE_SECONDS: float = 4.0
    #: Prepare the hot statements on PostgreSQL, and limit the session; 0 behind a pool of transactions (PgBouncer).
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
    #: Days for which entries of the audit log are kept; 0 = for ever.
    AUDIT_RETENTION_DAYS: float = 0.0
    #: Secrets that the audit log is sealed with, of 32 characters at least, newest first, separated by commas; empty = made from `SECRET_KEY`.
    AUDIT_KEYS: str = ""
    #: Most rows that retention removes in one transaction.
    PURGE_BATCH: int = 500
    #: Seconds the hourly purge works at the most; an hour later it goes on.
    PURGE_SECONDS: float = 300.0
    #: Largest request body, in bytes.
    MAX_BODY_BYTES: int = 4 * 1024 * 1024
    #: Seconds in which a request must have come, head and body; then it is cut off with 408. 0 = any time.
    REQUEST_SECONDS: float = 20.0
    #: Bytes of a request over HTTP that buy it a second more; at least 1.
    REQUEST_BYTES_PER_SECOND: int = 4096
    #: Deepest nesting of a JSON body.
    MAX_JSON_DEPTH: int = 64
    #: Most parts in a message.
    MAX_PARTS: int = 100
    #: Largest message, in bytes, as it is stored.
    MAX_MESSAGE_BYTES: int = 4 * 1024 * 1024
    #: Most artifacts of a task; an agent that begins another one fails it. 0 = any number.
    MAX_ARTIFACTS: int = 10_000
    #: Most that a run may say in artifacts, in bytes as they are stored (large files are beside that); then its task fails. 0 = any amount.
    MAX_ARTIFACT_BYTES: int = 64 * 1024 * 1024
    #: Largest metadata of a request, a message or a part, in bytes.
    MAX_METADATA_BYTES: int = 64 * 1024
    #: Most keys in such metadata.
    MAX_METADATA_KEYS: int = 256
    #: Most extensions, and most tasks referred to, that a message names.
    MAX_REFERENCES: int = 100
    #: Largest file, in bytes, that stays inside its message or artifact; larger ones go to the storage `a2a_files`.
    FILE_INLINE_BYTES: int = 64 * 1024
    #: Seconds for which the download URL of a file is good, at the least; twice as long at the most.
    FILE_URL_SECONDS: float = 3600.0
    #: What opens a download URL: "signed" (whoever has it) or "authenticated" (the caller it was made for, with credentials).
    FILE_URLS: str = "signed"
    #: Agents may fetch URLs of files from this machine's own loopback, in clear too. For development.
    FETCH_ALLOW_PRIVATE: bool = False
    #: Networks and host names that agents may fetch files from, separated by commas, though not public.
    FETCH_ALLOW_NETWORKS: str = ""
    #: Agents may fetch files by http, too.
    FETCH_ALLOW_HTTP: bool = False
    #: Proxy that agents fetch files by, and that resolves their names: `http://user:password@host:port`.
    FETCH_PROXY: str = ""
    #: File of certificate authorities (PEM) that vouch for servers of files, beside the system's.
    FETCH_CA_BUNDLE: str = ""
    #: Largest file that an agent fetches, in bytes.
    FETCH_BYTES: int = 16 * 1024 * 1024
    #: Longest an agent waits for a file it fetches, in seconds.
    FETCH_SECONDS: float = 30.0
    #: Seconds for which the link to a page works on which a secret is handed over, and for which the secret then waits for its turn.
    HANDOVER_SECONDS: float = 3600.0
    #: Most webhooks registered for one task.
    MAX_PUSH_CONFIGS: int = 16
    #: Most webhooks of one caller, or at what its tenant shares of the tenant, for tasks that have not ended. 0 = any number.
    MAX_PUSH_CONFIGS_PER_CALLER: int = 0
    #: Webhooks may lead to this machine's own loopback, in clear too, at any port but a service's. For development.
    WEBHOOK_ALLOW_PRIVATE: bool = False
    #: Networks (`10.1.0.0/16`) and host names (`hooks.corp`, `.corp` = all below) of webhooks, separated by commas, though not public.
    WEBHOOK_ALLOW_NETWORKS: str = ""
    #: Webhooks may have http URLs, too: then whoever is between reads them.
    WEBHOOK_ALLOW_HTTP: bool = False
    #: Ports of webhooks, and ranges; in ranges, ports of well-known services such as databases are left out.
    WEBHOOK_PORTS: str = "80,443,1024-65535"
    #: Proxy that webhooks go out by, and that resolves their names: `http://user:password@host:port`; the environment's are not used.
    WEBHOOK_PROXY: str = ""
    #: File of certificate authorities (PEM) that vouch for webhooks, beside the system's.
    WEBHOOK_CA_BUNDLE: str = ""
    #: Longest a webhook's connection takes to be made, in seconds, TLS included.
    WEBHOOK_CONNECT_SECONDS: float = 5.0
    #: Longest one delivery of a webhook takes in all, in seconds.
    WEBHOOK_SECONDS: float = 15.0
    #: Largest notification, in bytes: of what is larger the task is sent without artifacts and history. Pieces of artifacts are joined up to 256 KiB.
    WEBHOOK_MAX_BYTES: int = 1024 * 1024
    #: Addresses and networks, separated by commas, that may read `/metrics` without credentials. Others need the scope `metrics`; without it there is no such page.
    METRICS_PEERS: str = ""
    #: Where a worker shows its own counters, `host:port`, to whoever can reach that; empty = nowhere.
    METRICS_LISTEN: str = ""
    #: Webhooks one process sends to at once; more wait in the table.
    WEBHOOK_SLOTS: int = 500
    #: How many of them may be one receiver's; one that is slow or refuses gets one.
    WEBHOOK_RECEIVER_SLOTS: int = 16
    #: Days for which deliveries of webhooks are kept once they are settled, with their attempts; 0 = as long as the task.
    WEBHOOK_RETENTION_DAYS: float = 30.0
    #: Hours an `Idempotency-Key`, or the id of a message where its agent says so, is known again.
    IDEMPOTENCY_HOURS: float = 24.0
    #: Fernet keys for secrets at rest, newest first, separated by commas; empty = made from `SECRET_KEY`.
    SECRET_KEYS: str = ""
    #: Secrets that webhook signatures are made from (`whsec_...`), newest first, separated by commas; empty = made from `SECRET_KEY`.
    WEBHOOK_SECRETS: str = ""
    #: Agent cards are signed, if `A2A_PUBLIC_URL` says what stands in them.
    SIGN_CARDS: bool = True
    #: Keys that sign cards, newest first: files of them (JWK Sets or PEM), separated by commas, or a JWK Set itself; empty = made from `SECRET_KEY`.
    CARD_KEYS: str = ""
    #: Forms of a card that are signed: "both", where some readers leave out what is empty, or "strict", the specification's alone.
    CARD_SIGNED_FORMS: str = "both"
    #: Factor of all times between attempts at a webhook; below 1 only in tests.
    WEBHOOK_TIME_SCALE: float = 1.0
    #: Events of one task kept in memory by a process for its followers, as far as they have 8 MiB together.
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
