"""What has arrived, as a page. It fetches itself anew every two seconds; whatever others said is escaped."""

from __future__ import annotations

import time
from collections.abc import Iterable
from html import escape

from examples.receiver.inbox import Arrival, Inbox

__all__ = ["HEADERS", "page"]

#: The page runs nothing and loads nothing, whatever is on it.
HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)
STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem }
h1 { font-size: 1.4rem; margin: 0 0 .3rem }
p { margin: .3rem 0 1rem }
.counts b { font-variant-numeric: tabular-nums; margin-right: .2rem }
.counts span { margin-right: 1.4rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #8884; vertical-align: top }
th { font-weight: 600; opacity: .7 }
td.id, td.task { font-family: ui-monospace, monospace; font-size: .85em; white-space: nowrap }
td.time { font-variant-numeric: tabular-nums; white-space: nowrap }
td.what { overflow-wrap: anywhere; min-width: 16rem }
.mark { border-radius: .6rem; padding: .05rem .5rem; white-space: nowrap; display: inline-block; margin: 0 .2rem .15rem 0 }
.good { background: #1a7f3726; color: #1a7f37 } .plain { background: #8883 }
.warn { background: #bf870033; color: #8a6100 } .bad { background: #cf222e26; color: #cf222e }
@media (prefers-color-scheme: dark) { .good { color: #56d364 } .warn { color: #e3b341 } .bad { color: #ff7b72 } }
"""


def page(inbox: Inbox, asks: str) -> str:
    """The page; `asks` says what this receiver wants proven."""
    rows = "\n".join(map(_row, inbox.newest()))
    counts = " ".join(f"<span><b>{count}</b>{name}</span>" for name, count in inbox.counts.items())
    nothing = "" if rows else "<p>Nothing has arrived yet.</p>"
    heads = "".join(
        f"<th scope=col>{name}" for name in ("arrived", "task", "what", "result", "webhook-id")
    )
    return f"""<!doctype html>
<html lang=en><head><meta charset=utf-8><meta http-equiv=refresh content=2>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>Webhooks received</title><style>{STYLE}</style></head>
<body><h1>Webhooks received</h1><p>Asked for: {escape(asks)}. Newest first.</p>
<p class=counts>{counts}</p>
<div class=scroll><table><thead><tr>{heads}</thead><tbody>
{rows}
</tbody></table></div>{nothing}</body></html>
"""


def _row(arrival: Arrival) -> str:
    moment = time.strftime("%H:%M:%S", time.localtime(arrival.at))
    cells = (
        ("time", moment),
        ("task", escape(_short(arrival.told.task if arrival.told else ""))),
        ("what", escape(_what(arrival))),
        (
            "marks",
            " ".join(
                f'<span class="mark {kind}">{escape(text)}</span>' for kind, text in _marks(arrival)
            ),
        ),
        ("id", escape(_short(arrival.id))),
    )
    return "<tr>" + "".join(f"<td class={name}>{text}</td>" for name, text in cells) + "</tr>"


def _what(arrival: Arrival) -> str:
    told = arrival.told
    if told is None:
        return arrival.path
    piece = (
        ("more of " if told.append else "") + f"artifact {told.artifact}" if told.artifact else ""
    )
    said = (told.state, piece, "(last)" if piece and told.last else "", told.text)
    return " ".join(word for word in said if word) or told.kind


def _marks(arrival: Arrival) -> Iterable[tuple[str, str]]:
    if arrival.refused:
        yield "bad", f"refused: {arrival.refused}"
    for proof in arrival.proven:
        yield "good", proof
    if arrival.again:
        yield "plain", "came before"
    if arrival.disorder:
        yield "warn", f"out of order: {arrival.disorder}"


def _short(text: str) -> str:
    longest = 18
    return text if len(text) <= longest else text[: longest - 1] + "…"
