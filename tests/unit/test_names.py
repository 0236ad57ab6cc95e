"""Names: one public class name has one meaning, and functions are verbs (docs/reference/glossary.md)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests import ROOT

APPS = ("a2a_tasks", "a2a_push", "a2a_console", "a2a_project")
#: A row and the value of the protocol that it stores share a name; code writes the value with its module where both are used.
STORED_VALUES = {"Artifact", "Message", "PushConfig", "Task"}
#: Participles and gerunds that stood for functions: `told`, `shown`, `settling`.
PARTICIPLE = re.compile(
    r"_*([a-z]+(ed|ing)|told|shown|said|made|kept|held|known|taken|given|sent|found|begun|written|chosen|left|lost|met|heard|seen)"
)
#: Words of the form of a participle that are none, and words of Django, ASGI and the agent's interface.
NO_PARTICIPLES = {"need", "ring", "string", "succeed", "working", "_ring", "_heed"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in (path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))):
        if "migrations" not in path.parts and "commands" not in path.parts:
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def test_one_public_class_name_has_one_meaning() -> None:
    places = defaultdict(list)
    for path, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name: at for name, at in places.items() if len(at) > 1}.keys() == STORED_VALUES


def test_no_function_is_named_by_a_participle() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, functions) and PARTICIPLE.fullmatch(node.name)
        if node.name not in NO_PARTICIPLES and not _is_attribute(node)
    ] == []


def _is_attribute(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Properties and columns of the admin are values."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any("property" in text or "display" in text for text in decorators)


def test_one_id_of_a_system_check_has_one_meaning() -> None:
    """An operator silences a check by its id (SILENCED_SYSTEM_CHECKS)."""
    places = defaultdict(list)
    for path, tree in modules():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.keyword)
                and node.arg == "id"
                and isinstance(node.value, ast.Constant)
            ):
                places[node.value.value].append(path)
    assert places
    assert {name: at for name, at in places.items() if len(at) > 1} == {}
