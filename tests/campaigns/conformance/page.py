"""`var/reports/conformance.md` and its badge, from the results of the parts."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.campaigns.conformance.running import Result
from tests.campaigns.faultlab.report import REPORTS, describe_machine, save, table

__all__ = ["KNOWN", "list_unexpected", "write"]

KNOWN: list[dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("known.toml").read_text("utf-8")
)["known"]
BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {text}">
<rect width="{width}" height="20" rx="3" fill="#555"/><rect x="{left}" width="{right}" height="20" rx="3" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,sans-serif" font-size="11"><text x="6" y="14">{label}</text><text x="{start}" y="14">{text}</text></g>
</svg>
"""
#: Widths in pixels: of a character, and of the margins.
CHARACTER, MARGINS = 7, 12


def find_known(result: Result, test: str) -> dict[str, str] | None:
    """Return the entry of `known.toml` for a failed test."""
    part = result.part
    fits = (one for one in KNOWN if one["kit"] == part.kit and part.name.startswith(one["part"]))
    return next((one for one in fits if one["test"] in test), None)


def list_unexpected(results: Sequence[Result]) -> list[tuple[Result, str, str]]:
    """Return the failures that are not known, with what they say."""
    return [
        (result, test, said)
        for result in results
        for test, said in result.outcome.failed.items()
        if not find_known(result, test)
    ]


def write(results: Sequence[Result], folder: Path = REPORTS) -> Path:
    """Write the page and the badge; the path of the page."""
    unexpected = list_unexpected(results)
    passed = sum(result.outcome.passed for result in results)
    label, text = "A2A conformance", f"{passed} passed, {len(unexpected)} failed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conformance.svg").write_text(_draw(label, text, "#c33" if unexpected else "#3a3"))
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    sections = [
        "# Board of conformance",
        f"{text} unexpectedly, {when}.",
        describe_machine(),
        _list(results),
    ]
    sections += _tell_failures(results, unexpected)
    return save(folder / "conformance.md", sections)


def _draw(label: str, text: str, colour: str) -> str:
    left, right = (len(word) * CHARACTER + MARGINS for word in (label, text))
    return BADGE.format(
        label=label,
        text=text,
        colour=colour,
        left=left,
        right=right,
        width=left + right,
        start=left + 6,
    )


def _list(results: Sequence[Result]) -> str:
    heads = ("kit", "version", "part", "passed", "failed", "of them known", "skipped", "note")
    return table(heads, [_row(result) for result in results])


def _row(result: Result) -> tuple[object, ...]:
    begin = (result.part.kit, result.version or "-", result.part.name)
    if result.note:
        return *begin, "-", "-", "-", "-", result.note
    out = result.outcome
    known = sum(bool(find_known(result, test)) for test in out.failed)
    return *begin, out.passed, len(out.failed), known, out.skipped, ""


def _tell_failures(
    results: Sequence[Result], unexpected: Sequence[tuple[Result, str, str]]
) -> Iterator[str]:
    failed = [
        (one.part, test, found)
        for one in results
        for test in one.outcome.failed
        if (found := find_known(one, test))
    ]
    if failed:
        rows = [(part.kit, part.name, test, found["reason"]) for part, test, found in failed]
        yield "## Failures of the kits themselves\n\n" + table(
            ("kit", "part", "test", "reason"), rows
        )
    if unexpected:
        lines = [
            f"- {one.part.kit}, {one.part.name}: `{test}`: {' '.join(said.split())[:500]}"
            for one, test, said in unexpected
        ]
        yield "## Unexpected failures\n\n" + "\n".join(lines)
    seen, ran = [found for _, _, found in failed], {one.part.kit for one in results if not one.note}
    if gone := [
        f"- {one['kit']}: `{one['test']}`" for one in KNOWN if one not in seen and one["kit"] in ran
    ]:
        yield "## Known failures that did not occur\n\n" + "\n".join(gone)
