"""The patterns of the apps, found in their code, and texts that cost a pattern work: its own beginnings, many times."""

from __future__ import annotations

import ast
import importlib
import re
import string
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.support.thorough import THOROUGH

__all__ = ["Found", "find_all", "find_growth", "list_makings"]

#: Python's own reader of patterns. It has another name than in 3.10, and no types.
codes: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
Text = str | bytes
#: What a text begins with, what it repeats, and what it ends with.
Making = tuple[str, str, str]
Work = Callable[[Any], object]
Pattern = re.Pattern[Any]
#: Functions of `re` whose first argument is a pattern.
READERS = frozenset(
    {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
)
#: Most modules have no such call, and need not be parsed.
CALL = re.compile(rf"\.({'|'.join(READERS)})\b")
#: Methods that look for a pattern in each place of a text.
SEARCHES = frozenset({"findall", "finditer", "search", "split", "sub", "subn"})
#: One of each kind of character; a text has the same kind in each place that several fit.
KINDS = ("a", "-", "0", " ", "_", "=", "é")
POOL = (*KINDS, *string.printable, "\u2028", "\U0001f600")
#: What may follow, so that the pattern fails where it seems to end.
TAILS = ("", "\x00", "\n")
#: Characters of the first look at each text; then longer ones, of how many of those that cost most.
LOOK, SIZES = 2_000, ((10_000, 3), (100_000, 3), *([(1_000_000, 1)] if THOROUGH else []))
#: Power of the length that a cost may grow with: linear is 1, quadratic 2.
MOST_POWER = 1.7
#: Seconds below which a cost is noise.
NOISE = 0.0005
#: Seconds of a cost that is not measured again: of a first look, and of a comparison.
LONG, SURE = 0.02, 0.1
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    codes.CATEGORY_NOT_DIGIT: lambda char: not char.isdecimal(),
    codes.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    codes.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}


@dataclass(frozen=True)
class Found:
    """A pattern in the code; `name` has its module and what it is assigned to, or the function or class it is in."""

    name: str
    pattern: Pattern
    #: Whether the code may look for it anywhere in a text. Else texts are only matched from their beginning.
    searches: bool


def find_all(*apps: str) -> list[Found]:
    """Return every use of `re` in the apps. Raises NameError for a pattern that a function makes of its arguments."""
    files = [file for app in apps for file in sorted((ROOT / app).rglob("*.py"))]
    texts = {file: text for file in files if CALL.search(text := file.read_text(encoding="utf-8"))}
    trees = {file: ast.parse(text) for file, text in texts.items()}
    used = {name for tree in trees.values() for name in _methods(tree)}
    return [
        found
        for file, tree in trees.items()
        if "import re\n" in texts[file] or "from re " in texts[file]
        for found in _find(file, tree, used)
    ]


def _find(file: Path, tree: ast.Module, used: set[tuple[str, str]]) -> Iterator[Found]:
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not any(node.module == "re" for node in imported), f"{module}: write `import re`"
    for statement in tree.body:
        for node in filter(_is_use, ast.walk(statement)):
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            name = _name(statement)
            methods = {node.func.attr} - {"compile"} or {how for one, how in used if one == name}
            searches = not methods or bool(methods & SEARCHES)
            yield Found(f"{module}.{name}", _read(module, node), searches)


def _methods(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names of variables, each with a function of `re` that is called as their method."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in READERS:
                yield name, method


def _is_use(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in READERS
    )


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return statement.name
    return ""


def _read(module: str, call: ast.Call) -> Pattern:
    """Return the pattern that a call gives to `re`, compiled."""
    assert isinstance(call.func, ast.Attribute)
    last = call.args[1:2] if call.func.attr == "compile" else []
    flags = [word.value for word in call.keywords if word.arg == "flags"] or last
    known = vars(importlib.import_module(module))
    pattern, flag = (
        eval(compile(ast.Expression(part), module, "eval"), known)  # noqa: S307 - our own code
        for part in (call.args[0], *(flags or [ast.parse("0", mode="eval").body]))
    )
    return re.compile(pattern, flag)


def repeats_a_lookaround_possessively(pattern: Pattern) -> bool:
    """Return whether a possessive repetition in the pattern has a lookaround."""

    def look(node: Any) -> bool:
        if isinstance(node, tuple) and node[0] is codes.POSSESSIVE_REPEAT and "ASSERT" in str(node):
            return True
        return isinstance(node, (tuple, list, parser.SubPattern)) and any(map(look, node))

    return look(parser.parse(pattern.pattern, pattern.flags))


def list_makings(pattern: Pattern) -> set[Making]:
    """Return what texts for a pattern are made of: each beginning of the pattern, in several kinds of characters."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    return {
        (before, unit, end)
        for kind in range(len(KINDS))
        for before, unit, rest in _units(tree, "", "", kind)
        for tail in TAILS
        for end in (tail, rest + tail)
    }


def make_text(pattern: Pattern, making: Making, size: int) -> Text:
    """Return a text of about that many characters."""
    before, unit, tail = making
    text = before + unit * ((size - len(before)) // len(unit)) + tail
    return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _units(items: Any, before: str, after: str, kind: int) -> Iterator[Making]:
    """Yield what may be repeated, with the beginning that it follows and the rest that follows it."""
    samples = [_sample([item], kind) for item in items]
    for number, (code, argument) in enumerate(items):
        start, sample = before + "".join(samples[:number]), samples[number]
        rest = "".join(samples[number + 1 :]) + after
        for inner, is_repeated in _inner(code, argument):
            yield from _units(inner, start, rest, kind)
            if is_repeated and (unit := _sample(inner, kind)):
                yield start, unit, rest
        if start + sample:
            yield "", start + sample, rest


def _inner(code: Any, argument: Any) -> list[tuple[Any, bool]]:
    """Return the patterns within an item, and whether the item repeats them."""
    if code is codes.SUBPATTERN:
        return [(argument[-1], False)]
    if code is codes.BRANCH:
        return [(one, False) for one in argument[1]]
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        return [(argument[2], True)]
    if code is codes.ATOMIC_GROUP:
        return [(argument, False)]
    if code is codes.ASSERT:
        return [(argument[1], False)]
    return []


def _sample(items: Any, kind: int) -> str:
    """Return a short text that the items match."""
    return "".join(_sample_of(code, argument, kind) for code, argument in items)


def _sample_of(code: object, argument: Any, kind: int) -> str:
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        return _sample(argument[2], kind) * max(int(argument[0]), 1)
    if code is codes.BRANCH:
        return _sample(argument[1][kind % len(argument[1])], kind)
    if inner := _inner(code, argument):
        return _sample(inner[0][0], kind)
    if code in {codes.AT, codes.ASSERT_NOT, codes.GROUPREF}:
        return ""
    fit = [char for char in POOL if _fits(code, argument, char)]
    fit = [char for char in KINDS if char in fit] or fit
    if fit:
        return str(fit[kind % len(fit)])
    first = argument[0][1] if code is codes.IN else argument
    return chr(first if isinstance(first, int) else first[0])


def _fits(code: Any, argument: Any, char: str) -> bool:
    if code is codes.IN:
        negated = argument[0][0] is codes.NEGATE
        return negated != any(_fits(inner, what, char) for inner, what in argument[negated:])
    if code is codes.RANGE:
        return bool(argument[0] <= ord(char) <= argument[1])
    if code is codes.CATEGORY:
        return _CATEGORIES[argument](char)
    if code is codes.ANY:
        return char != "\n"
    return bool((ord(char) == argument) != (code is codes.NOT_LITERAL))


def find_growth(found: Found) -> str:
    """Return the text whose cost grows faster than its length, described; empty = none.

    The cost is the thread's own time at the processor, the least of several tries; only ratios count.
    """
    pattern = found.pattern
    uses: dict[str, Work] = {"match": pattern.match, "fullmatch": pattern.fullmatch}
    if found.searches:
        uses["sub"] = lambda text: pattern.sub(text[:0], text)
    for use, work in uses.items():
        size, costs = (
            LOOK,
            {
                making: _cost(work, make_text(pattern, making, LOOK))
                for making in list_makings(pattern)
            },
        )
        for longer, count in SIZES:
            slowest = sorted(costs, key=lambda making: costs[making], reverse=True)[:count]
            costs = {}
            for making in slowest:
                costs[making] = _cost(work, make_text(pattern, making, longer))
                if told := _compare(pattern, work, making, size, longer, costs[making]):
                    return f"{use} of {making!r}: {told}"
            size = longer
    return ""


def _compare(
    pattern: Pattern, work: Work, making: Making, size: int, longer: int, cost: float
) -> str:
    """Return the costs of both texts if that of the longer one is more than its share, several times."""
    if cost < NOISE:
        return ""
    short, long = make_text(pattern, making, size), make_text(pattern, making, longer)
    least = _least(work, short)
    most = max(least, NOISE) * (longer / size) ** MOST_POWER
    tries = max(1, min(30, int(2 * SURE / cost)))  # a short time may be that of the machine
    while cost > most and (tries := tries - 1):
        cost = min(cost, _cost(work, long))
    told = f"{least:.4f} s, and {cost:.4f} s for {longer / size:.0f} times it"
    return told if cost > most else ""


def _least(work: Work, text: Text, tries: int = 10) -> float:
    least = _cost(work, text)
    while least < LONG and (tries := tries - 1):
        least = min(least, _cost(work, text))
    return least


def _cost(work: Work, text: Text) -> float:
    begun = time.thread_time()
    work(text)
    return time.thread_time() - begun
