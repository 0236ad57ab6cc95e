"""The generated parts of `protocol-support.md`: from the mounts, the dialects and `requirements.toml`.

The tables contain the output of the dialects themselves, not descriptions of it.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from markdown_table import table
from setting_rows import setting_rows

from a2a_tasks.conf import Compatibility
from a2a_tasks.protocol import detection
from a2a_tasks.protocol.catalogue import BY_NAME, OPERATIONS
from a2a_tasks.protocol.dialects import DIALECTS, Dialect, Subject
from a2a_tasks.protocol.dialects.v03_rest import V03Rest
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Task, TaskState, TaskStatus

__all__ = ["PARTS"]

Rows = dict[str, tuple[str, ...]]
Row = tuple[str, Callable[[Dialect], str]]

DASH = "–"
REQUIREMENTS = Path(__file__).resolve().parent / "requirements.toml"


def code(text: str) -> str:
    """As code, if there is any."""
    return f"`{text}`" if text else DASH


def columns(cells: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Columns by their heads; equal neighbours become one."""
    for column, alike in itertools.groupby(cells.items(), key=lambda item: item[1]):
        yield ", ".join(head for head, _ in alike), column


def by_column(corner: str, names: Iterable[str], cells: Mapping[str, tuple[str, ...]]) -> str:
    """A table of columns, with the names of its rows before them."""
    found = list(columns(cells))
    rows = zip(names, *(column for _, column in found), strict=True)
    return table((corner, *(head for head, _ in found)), rows)


def mounts() -> str:
    """The address of each dialect."""
    rows = (
        (
            DIALECTS[name].title,
            f"`{mount.path}`",
            "JSON-RPC, HTTP+JSON" if DIALECTS[name].routes else "JSON-RPC",
            ", ".join(sorted(mount.admits, reverse=True)) or "none",
        )
        for name, mount in MOUNTS.items()
    )
    return table(("dialect", "path below the agent", "bindings", "accepted `A2A-Version`"), rows)


def json_rpc_operations() -> str:
    """Operation and dialect over JSON-RPC: the methods."""
    cells = {
        dialect.title: tuple(
            ", ".join(code(text) for text, meant in dialect.methods.items() if meant == name)
            or DASH
            for name in BY_NAME
        )
        for dialect in DIALECTS.values()
    }
    return by_column("operation", BY_NAME, cells)


def http_json_operations() -> str:
    """Operation and dialect over HTTP+JSON: verb and path."""
    cells = {
        dialect.title: tuple(_routes(dialect, operation.name) for operation in OPERATIONS)
        for dialect in DIALECTS.values()
        if dialect.routes
    }
    return by_column("operation", (operation.name for operation in OPERATIONS), cells)


def _routes(dialect: Dialect, name: str) -> str:
    found = [route for route in dialect.rest.routes if route.operation == name]
    return ", ".join(code(f"{'/'.join(route.verbs)} /{route.path}") for route in found) or DASH


# -- detection -------------------------------------------------------------------------------------------------------

#: The decision of each row of the decision tables, by its number.
DECIDES = {
    "J2": "seed-0",
    "J3": "0.1, or 0.0 for version 0.0. Their spelling is equal",
    "J4": "seed-0 if the parameters have a member `url`, else 0.1",
    "J5": "seed-0 if there is a `sessionId` or the task was created in seed-0, else 0.1",
    "J6": "0.3, or 0.2 for version 0.2. Their spelling is equal",
    "J7": "the dialect of the version. Without one: seed-0 if there is a `sessionId` (not for `tasks/resubscribe`, which seed-0 lacks); else the dialect in which the task was created, if that is seed-0, 0.0 or 0.1 (for `tasks/resubscribe` 0.1 instead of seed-0); else 0.3",
    "J8": "0.3",
    "J9": "the draft",
    "J10": "1.0",
    "J11": "1.0 or the draft, by the marks below",
    "H1": "0.2",
    "H2": "0.3",
    "H3": "the draft",
    "H4": "the draft",
    "H5": "0.3, the draft or 1.0, by the body: see below",
    "H6": "the draft if the version is 1.0, if the media type is `application/a2a+json`, or if the task was created in the draft; else 0.3",
}


def json_rpc_detection() -> str:
    """Row by row: the methods and the dialect."""
    rows = (_decision(row, "") for row in detection.CALLS)
    return table(("row", "method", "dialect"), rows)


def http_json_detection() -> str:
    """Row by row: the paths and the dialect."""
    rows = [_decision(row, "/") for row in (*detection.ROUTES, detection.BELOW)]
    return table(("row", "path", "dialect"), [*rows, ("", "every other path", "1.0")])


def _decision(row: detection.Rule, slash: str) -> tuple[str, str, str]:
    methods = ", ".join(code(slash + method) for method in sorted(row.methods))
    return row.number, methods, DECIDES[row.number]


# -- features ---------------------------------------------------------------------------------------------------------

AT = "2026-01-01T00:00:00.000Z"


def _task(state: TaskState) -> Task:
    return Task(id="t", context_id="c", status=TaskStatus(state=state, timestamp=AT))


def _write_state(dialect: Dialect, state: TaskState) -> str:
    answer = json.loads(dialect.answer("GetTask", _task(state)))
    return str(answer["status"]["state"])


def _begins_with(dialect: Dialect) -> str:
    task = _task(TaskState.WORKING)
    items = [json.loads(i) for i in dialect.first(Subject.of(task), task, ended=False)]
    if not items:
        return "nothing"
    first = items[0].get("task", items[0])
    return "a status event" if "final" in first else "the Task"


def _list_lost_states(dialect: Dialect) -> str:
    lost = dialect.features.degraded.items()
    return ", ".join(f"{state.word} as {text.word}" for state, text in lost) or "none"


def _pauses(dialect: Dialect) -> str:
    pauses = [state.word for state in TaskState if state in dialect.features.pauses]
    return " or ".join(["the task's end", *pauses])


#: A message in ProtoJSON whose configuration leaves out what is false.
LACONIC = {
    "message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]},
    "configuration": {},
}


def _waits(dialect: Dialect) -> str:
    text = "when the task settles" if dialect.features.waits else "at once"
    if not isinstance(dialect.rest, V03Rest):
        return text
    request = dialect.rest.decode("SendMessage", LACONIC)
    immediately = isinstance(request, SendMessageRequest) and request.return_immediately
    laconic = "at once" if immediately else "when the task settles"
    return f"{text}; over HTTP+JSON with a `configuration` without `blocking`: {laconic}"


def _history(dialect: Dialect) -> str:
    length = dialect.features.history
    return "all of it" if length is None else "none" if length == 0 else f"the last {length}"


def _describe_cancel(dialect: Dialect) -> str:
    text, over_http = (_write_state(form, TaskState.CANCELED) for form in (dialect, dialect.rest))
    return code(text) if text == over_http else f"`{text}`, over HTTP+JSON `{over_http}`"


def either(member: str, yes: str, no: str) -> Callable[[Dialect], str]:
    """A cell with one of two texts, by the feature of that name."""
    return lambda dialect: yes if getattr(dialect.features, member) else no


def _with_subscriptions(say: Callable[[Dialect], str]) -> Callable[[Dialect], str]:
    """Return a cell for dialects that have subscriptions, and a dash for others."""
    return lambda dialect: say(dialect) if "SubscribeToTask" in dialect.methods.values() else DASH


FEATURES: tuple[Row, ...] = (
    ("a new task is named by", either("client_names_task", "the client", "the host")),
    ("a send without configuration answers", _waits),
    ("default length of the history", _history),
    (
        "a message to an ended task",
        either("reopens", "starts it again if it was created in seed-0, 0.0 or 0.1", "is refused"),
    ),
    ("an agent's direct Message", either("direct_message", "is the answer", "ends a task")),
    ("a send's stream ends at", _pauses),
    ("a subscription begins with", _with_subscriptions(_begins_with)),
    (
        "a subscription to an ended task",
        _with_subscriptions(either("lenient_subscribe", "shows its end", "is refused")),
    ),
    ("status events say `final`", either("final", "yes", "no")),
    ("artifacts are identified by", either("index", "`index`", "`artifactId`")),
    ("a cancelled task is", _describe_cancel),
    ("states without a name of their own", _list_lost_states),
    ("clients must announce required extensions", either("enforces_extensions", "yes", "no")),
    ("errors in a stream have a line `event: error`", either("error_event", "yes", "no")),
    (
        "a refused JSON-RPC stream is",
        either("streams_refusals", "a stream with the error as its only event", "a JSON answer"),
    ),
)


def features() -> str:
    """The table of differences in behaviour between the dialects."""
    cells = {
        dialect.title: tuple(say(dialect) for _, say in FEATURES) for dialect in DIALECTS.values()
    }
    return by_column("", (about for about, _ in FEATURES), cells)


def switches() -> str:
    """The settings that change them."""
    rows = ((name, default, text) for name, _, default, text in setting_rows(Compatibility))
    return table(("setting", "default", "effect"), rows)


# -- requirements ----------------------------------------------------------------------------------------------------


KINDS = {
    "met, with tests": {"tests"},
    "met in part": {"tests", "later"},
    "not met yet": {"later"},
    "no duty of the host, or an option it does not use": {"not_here"},
}


def _document() -> tuple[dict[str, list[str]], dict[str, dict[str, Any]]]:
    document = tomllib.loads(REQUIREMENTS.read_text(encoding="utf-8"))
    return document.pop("chapters"), document


def coverage() -> str:
    """The number of requirements by the way they are met."""
    _, document = _document()
    has = [about.keys() & {"tests", "later", "not_here"} for about in document.values()]
    rows = [(kind, str(has.count(members))) for kind, members in KINDS.items()]
    return table(("requirements", str(len(document))), rows)


def requirements() -> str:
    """Every requirement by chapter, with the files of its tests."""
    chapters, document = _document()
    head = ("id", "for", "level", "requirement", "tests")
    written = []
    for title, (first, last) in chapters.items():
        lines = [_line(name, about) for name, about in document.items() if first <= name <= last]
        written.append(f"### {title}\n\n{table(head, lines)}")
    return "\n".join(written)


BESIDES = {"later": "Later: {}.", "not_here": "Not here: {}.", "note": "*{}*"}


def _line(name: str, about: Mapping[str, Any]) -> tuple[str, ...]:
    files = dict.fromkeys(test.partition("::")[0] for test in about.get("tests", ()))
    text = [", ".join(map(_link, files))] if files else []
    text += [form.format(about[member]) for member, form in BESIDES.items() if member in about]
    texts = " ".join(about["for"])
    whose = "" if about["duty"] == "server" else f" *Duty: {about['duty']}.*"
    return name, texts, about["level"], about["text"] + whose, "<br>".join(text)


def _link(path: str) -> str:
    return f"[{Path(path).stem.removeprefix('test_')}](../../{path})"


PARTS: dict[str, Callable[[], str]] = {
    part.__name__: part
    for part in (
        mounts,
        json_rpc_operations,
        http_json_operations,
        json_rpc_detection,
        http_json_detection,
        features,
        switches,
        coverage,
        requirements,
    )
}
