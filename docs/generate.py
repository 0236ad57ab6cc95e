"""Write the parts of the pages that the code knows better: `python docs/generate.py`; with --check, only compare.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`; the functions here are named after the parts.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import protocol_support  # noqa: E402 - beside this file
from markdown_table import table  # noqa: E402
from setting_rows import setting_rows  # noqa: E402

from a2a_tasks.protocol import errors, lifecycle  # noqa: E402
from a2a_tasks.protocol.catalogue import OPERATIONS  # noqa: E402
from a2a_tasks.telemetry.attributes import TABLE  # noqa: E402

PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def transitions() -> str:
    """The table of transitions."""
    states = list(lifecycle.TRANSITIONS)
    rows = (
        (f"**{state.word}**", *("✓" if to in lifecycle.TRANSITIONS[state] else "" for to in states))
        for state in states
    )
    return table(("from \\ to", *(state.word for state in states)), rows)


def operations() -> str:
    """The operations and their routes over HTTP+JSON."""
    rows = (
        (f"`{o.name}`", f"`{o.verb} {o.path}`", "event stream" if o.streams else "JSON")
        for o in OPERATIONS
    )
    return table(("JSON-RPC method", "HTTP+JSON route, below the agent", "answer"), rows)


def kinds() -> list[type[errors.A2AError]]:
    """The errors that a client can tell apart. Their subclasses have equal codes, and at most another name in a dialect."""
    return [
        errors.InternalError,
        *errors.RequestError.__subclasses__(),
        errors.IdempotencyConflict,
        *errors.ProtocolError.__subclasses__(),
    ]


def faults() -> str:
    """The errors and their faces."""
    rows = (
        (
            error.__name__,
            str(error.code),
            str(error.http_status),
            f"`{error.grpc_status}`",
            f"`{error.reason}`" if error.reason else "",
            " ".join((error.__doc__ or "").split()),
        )
        for error in kinds()
    )
    return table(("error", "JSON-RPC", "HTTP", "status", "reason", "when"), rows)


def settings() -> str:
    """Every A2A_* setting."""
    return table(("variable", "type", "default", "what it is"), setting_rows())


def spans() -> str:
    """The attributes of spans."""
    rows = (
        (f"`{row.name}`", ", ".join(f"`{span}`" for span in row.spans), row.meaning)
        for row in TABLE
    )
    return table(("attribute", "spans", "what it is"), rows)


def kit_failures() -> str:
    """The failures of conformance kits that are their own."""
    known = DOCS.parent / "lab" / "conformance" / "known.toml"
    rows = (
        (one["kit"], one["part"], f"`{one['test']}`", one["reason"])
        for one in tomllib.loads(known.read_text(encoding="utf-8"))["known"]
    )
    return table(("kit", "part", "test", "reason"), rows)


PARTS: dict[str, Callable[[], str]] = {
    part.__name__: part for part in (transitions, operations, faults, settings, spans, kit_failures)
} | protocol_support.PARTS


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check name those that are stale."""
    stale = []
    for page in sorted([*DOCS.glob("*.md"), *DOCS.glob("reference/*.md")]):
        old = page.read_text(encoding="utf-8")
        new = PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], old)
        if new != old:
            stale.append(page.name)
            if "--check" not in arguments:
                page.write_text(new, encoding="utf-8")
    verb = "stale, run python docs/generate.py" if "--check" in arguments else "written"
    for page_name in stale:
        sys.stdout.write(f"{page_name}: {verb}\n")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
