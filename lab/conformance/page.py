"""`var/reports/conformance.md` and its badge, from the results of the parts."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.conformance.running import Result
from lab.faultlab.report import REPORTS, describe_machine, save, table

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
#: Characters of what a failure says.
MOST = 500


def find_known(result: Result, test: str) -> dict[str, str] | None:
    """Return the entry of `known.toml` for a failed test."""
    return next((one for one in KNOWN if _is_of(one, result) and one["test"] in test), None)


def _is_of(entry: dict[str, str], result: Result) -> bool:
    return entry["kit"] == result.part.kit and result.part.name.startswith(entry["part"])


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
    known = sum(len(result.outcome.failed) for result in results) - len(unexpected)
    told = f"{passed} passed, {len(unexpected)} failed, {known} failed by faults of kits"
    told += time.strftime(", %Y-%m-%d", time.gmtime())
    colour = "#c33" if unexpected else "#3a3" if passed else "#999"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conformance.svg").write_text(_draw("A2A conformance", told, colour))
    sections = ["# Board of conformance\n", f"{told}.\n", describe_machine(), _list(results)]
    return save(folder / "conformance.md", [*sections, *_tell_failures(results, unexpected)])


def _draw(label: str, text: str, colour: str) -> str:
    left, right = (len(word) * CHARACTER + MARGINS for word in (label, text))
    places = {"left": left, "right": right, "width": left + right, "start": left + 6}
    return BADGE.format(label=label, text=text, colour=colour, **places)


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
    failed = [(one, test) for one in results for test in one.outcome.failed]
    known = [(one.part, test, found) for one, test in failed if (found := find_known(one, test))]
    if known:
        rows = [(part.kit, part.name, test, found["reason"]) for part, test, found in known]
        yield "\n## Faults of the kits\n\n" + table(("kit", "part", "test", "reason"), rows)
    for heading, lines in (
        ("Unexpected failures", [_say(*one) for one in unexpected]),
        ("Known failures that did not occur", _list_gone(results, [one for *_, one in known])),
    ):
        if lines:
            yield "\n".join([f"\n## {heading}\n", *lines])


def _say(result: Result, test: str, said: str) -> str:
    told = " ".join(said.split())[:MOST]
    return f"- {result.part.kit}, {result.part.name}: `{test}`: {told}"


def _list_gone(results: Sequence[Result], seen: Sequence[dict[str, str]]) -> list[str]:
    ran = [result for result in results if not result.note]
    gone = [one for one in KNOWN if one not in seen and any(_is_of(one, each) for each in ran)]
    return [f"- {one['kit']}, {one['part']}: `{one['test']}`" for one in gone]
