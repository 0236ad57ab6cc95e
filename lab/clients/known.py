"""The published clients that the campaign knows, with what each does at a host by default: the table of docs/reference/known-clients.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from lab.clients.published import Client

__all__ = ["CHECKS", "KNOWN", "Known", "join_equal", "table"]

#: What clients are asked, and its name in the table.
CHECKS = {
    "card_names_the_dialect": "",
    "blocking_send": "send",
    "stream_of_chunks": "stream",
    "silent_send": "",
    "silent_stream": "",
    "input_required": "",
    "input_required_and_reply": "question and answer",
    "relayed_question": "",
    "cancel_running": "cancel",
    "files_and_data": "files",
}
ALL = tuple(check for check in CHECKS if check != "input_required")
#: Of frameworks, which do not show the card and have no call that cancels.
MOST = tuple(check for check in ALL if check not in {"card_names_the_dialect", "cancel_running"})
#: Of those that give texts alone.
TEXTS = MOST[:-1]
HTTP = ("JSONRPC", "HTTP+JSON")
EVERY = (*HTTP, "GRPC")


@dataclass(frozen=True)
class Known:
    """A release of a client: a row of the table."""

    name: str
    client: Client
    #: Where nothing else is said, each check succeeds over each binding.
    checks: tuple[str, ...] = ALL
    #: By binding and check, words of the error that it ends with instead, through no fault of the host.
    faults: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: What the table says: its default timeout, what must be set, what it cannot do.
    timeout: str = "5 s without a byte"
    to_set: str = ""
    cannot: str = ""

    @property
    def row(self) -> str:
        """Its row of the table."""
        bindings = ", ".join(
            {"JSONRPC": "JSON-RPC", "GRPC": "gRPC"}.get(b, b) for b in self.client.bindings
        )
        able = {
            c for c in self.checks if not all((b, c) in self.faults for b in self.client.bindings)
        }
        works = ", ".join(word for check, word in CHECKS.items() if word and check in able)
        cells = (self.name, bindings, works, self.timeout, self.to_set, self.cannot)
        return f"| {' | '.join(cell or '-' for cell in cells)} |"


FIVE = "5 s without a byte; none over gRPC"
PATIENT = "waiting over HTTP+JSON: `httpx.AsyncClient(timeout=None)`; gRPC: [a channel factory](../clients.md#grpc)"
NEWEST = Client("sdk_10.py", "1.0", EVERY, "sdk_13.txt")
OVER_REST = {("HTTP+JSON", "silent_send"): "Timeout"}
SCHEME = "gRPC: the URL of the card without its scheme, and `grpcChannelCredentials`"
ROUGH = "over HTTP+JSON and gRPC, it loses names of files and `append`, and leaves bytes in base64"
NO_METADATA = "'NoneType' object is not iterable"

KNOWN = [
    Known("a2a-sdk 0.2.16", Client("sdk_02.py", "0.2", ("JSONRPC",)), timeout="5 s without a byte"),
    Known("a2a-sdk 0.3.26", Client("sdk_03.py", "0.3", EVERY), ALL, OVER_REST, FIVE, PATIENT),
    Known("a2a-sdk 1.0.3", Client("sdk_10.py", "1.0", EVERY), ALL, OVER_REST, FIVE, PATIENT),
    Known("a2a-sdk 1.3.0", NEWEST, ALL, OVER_REST, FIVE, PATIENT),
    Known(
        "@a2a-js/sdk 0.3.14",
        Client("sdk_js_03.mjs", "0.3", EVERY),
        timeout="above 8 s",
        to_set=SCHEME,
        cannot=ROUGH,
    ),
    Known(
        "@a2a-js/sdk 1.3.0",
        Client("sdk_js_10.mjs", "1.0", EVERY),
        timeout="above 8 s",
        to_set=SCHEME,
    ),
    Known(
        "google-adk 2.13.0, `RemoteA2aAgent`",
        Client("adk_client.py", "1.0", ("JSONRPC",)),
        MOST,
        timeout="600 s",
        to_set="`a2a_client_factory=ClientFactory(ClientConfig(streaming=False))`, else sessions keep the last piece of an answer alone",
        cannot="cancel; take a card that names gRPC at another origin than its own",
    ),
    Known(
        "strands-agents 1.62.0, `A2AAgent`",
        Client("strands_client.py", "0.3", ("JSONRPC",)),
        ("blocking_send", "stream_of_chunks", "silent_send", "silent_stream", "input_required"),
        timeout="300 s",
        cannot="answer a question in its task, take files, cancel",
    ),
    Known(
        "agent-framework-a2a 1.0.0b261022, `A2AAgent`",
        Client("agent_framework_client.py", "1.0", HTTP),
        MOST,
        timeout="60 s without a byte",
        to_set="a longer `timeout` for agents that are silent for a minute, waiting over HTTP+JSON",
        cannot="cancel; show a login that a task needs; say why a task failed (below)",
    ),
    Known(
        "crewai 1.15.30, `A2AClientConfig`",
        Client("crewai_client.py", "0.3", EVERY),
        TEXTS,
        {(binding, "stream_of_chunks"): "#0;............................. #1;" for binding in HTTP}
        | {("GRPC", check): NO_METADATA for check in TEXTS},
        timeout="120 s",
        cannot="stream: it puts a blank between the pieces of a text; gRPC without credentials; take files, cancel",
    ),
    Known(
        "fasta2a 2.1.1",
        Client("fasta2a_client.py", "0.3", ("JSONRPC",)),
        ("blocking_send",),
        {("JSONRPC", "blocking_send"): "KeyError: 'task'"},
        cannot="read an answer (below)",
    ),
]


def table() -> str:
    """The table of docs/reference/known-clients.md."""
    head = "| client | bindings | works | stops after | to set | cannot |\n| --- | --- | --- | --- | --- | --- |"
    return "\n".join((head, *join_equal(known.row for known in KNOWN)))


def join_equal(rows: Iterable[str]) -> Iterable[str]:
    """Join neighbours that differ in their first cell alone."""
    cells = (row.removeprefix("| ").partition(" | ") for row in rows)
    for rest, equal in groupby(cells, key=itemgetter(2)):
        yield f"| {', '.join(name for name, _, _ in equal)} | {rest}"
