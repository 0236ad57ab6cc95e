"""Names: one public class name has one meaning, and functions are verbs (docs/reference/glossary.md)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from tests import ROOT

#: All folders with code of the product; the names of tests are sentences.
FOLDERS = (
    "a2a_tasks",
    "a2a_push",
    "a2a_console",
    "a2a_project",
    "a2a_host",
    "a2a_frameworks",
    "a2a_grpc",
    "a2a_doors",
    "examples",
    "lab/bench",
    "docs",
)
#: The folders that are imported together, in which one class name has one meaning.
APPS = (
    "a2a_tasks",
    "a2a_push",
    "a2a_console",
    "a2a_project",
    "a2a_host",
    "a2a_frameworks",
    "a2a_grpc",
    "a2a_doors",
)
#: Django's name for the class of a command.
PER_MODULE = {"Command"}
#: A row and the value of the protocol that it stores share a name; code writes the value with its module where both are used.
STORED_VALUES = {"Artifact", "Message", "PushConfig", "Task"}
#: Participles and gerunds that stood for functions: `told`, `made_from`, `errors_told`.
PARTICIPLE = re.compile(
    r"[a-z]+(ed|ing)|began|begun|chosen|foreseen|found|given|heard|held|kept|known|left|lost|made|met|said|seen|sent|shown|slept"
    r"|sought|taken|told|unheld|written"
)
#: Words of the form of a participle that are none.
NO_PARTICIPLES = frozenset(
    [
        "anything",
        "embed",
        "everything",
        "feed",
        "heed",
        "mapping",
        "need",
        "nothing",
        "ping",
        "proceed",
        "ring",
        "seed",
        "setting",
        "string",
        "succeed",
        "warning",
    ]
)
#: Verbs, after which a participle stands for what the verb is about: `list_disabled`, `is_draining`, `count_waiting`.
VERBS = frozenset(
    [
        "add",
        "answer",
        "are",
        "assemble",
        "await",
        "cancel",
        "check",
        "claim",
        "count",
        "decide",
        "empty",
        "ensure",
        "exclude",
        "execute",
        "explain",
        "filter",
        "find",
        "get",
        "give",
        "hand",
        "has",
        "heartbeat",
        "is",
        "join",
        "limit",
        "list",
        "lock",
        "make",
        "match",
        "number",
        "on",
        "parse",
        "pop",
        "read",
        "receive",
        "reclaim",
        "record",
        "refuse",
        "release",
        "remove",
        "replay",
        "retry",
        "revoke",
        "rotate",
        "run",
        "save",
        "say",
        "select",
        "serve",
        "stop",
        "take",
        "to",
        "uncount",
        "wait",
        "write",
    ]
)
#: Names that Django, asyncio, grpclib, frameworks and the interface of agents give.
GIVEN = frozenset(
    [
        "cancelled",  # Agent.cancelled, which authors write
        "connection_lost",
        "connection_made",
        "data_received",
        "extended_card",
        "lookup_allowed",
        "pause_writing",
        "resume_writing",
        "structured_output",
        "supports_function_calling",
        "unacked_size",
        "working",
    ]
)


def modules(folders: Iterable[str] = FOLDERS) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        yield from _parse(folder)


@cache
def _parse(folder: str) -> list[tuple[str, ast.Module]]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [
        (str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8")))
        for path in paths
        if "migrations" not in path.parts
    ]


@pytest.mark.checkout
def test_one_public_class_name_has_one_meaning() -> None:
    places = defaultdict(list)
    for path, tree in modules(APPS):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in PER_MODULE:
                places[node.name].append(path)
    assert {name: at for name, at in places.items() if len(at) > 1}.keys() == STORED_VALUES


@pytest.mark.checkout
def test_no_function_is_named_by_a_participle() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, functions) and is_participle(node.name) and not _is_attribute(node)
    ] == []


def is_participle(name: str) -> bool:
    """Return whether a name begins with a participle, or ends with one and has no verb."""
    words = name.strip("_").split("_")
    first, last = words[0], words[-1]
    ends = (last,) if first not in VERBS else ()
    return name not in GIVEN and any(
        PARTICIPLE.fullmatch(word) and word not in NO_PARTICIPLES for word in (first, *ends)
    )


@pytest.mark.parametrize(
    "name", ["made_from", "known_as", "errors_told", "_slept", "unheld", "drain_left"]
)
def test_participles_are_found_at_both_ends(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize(
    "name", ["list_disabled", "is_draining", "_ring", "read_settings", "from_seed"]
)
def test_verbs_are_no_participles(name: str) -> None:
    assert not is_participle(name)


def _is_attribute(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Properties and columns of the admin are values."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any("property" in text or "display" in text for text in decorators)


@pytest.mark.checkout
def test_one_id_of_a_system_check_has_one_meaning() -> None:
    """An operator silences a check by its id (SILENCED_SYSTEM_CHECKS)."""
    places = defaultdict(list)
    for path, tree in modules(APPS):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.keyword)
                and node.arg == "id"
                and isinstance(node.value, ast.Constant)
            ):
                places[node.value.value].append(path)
    assert places
    assert {name: at for name, at in places.items() if len(at) > 1} == {}
