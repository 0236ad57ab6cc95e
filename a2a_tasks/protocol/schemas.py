"""JSON Schema (2020-12) in bounded work: schemas come from agents, and what they describe from clients.

`jsonschema` decides, with other functions where its own need more than linear time: patterns are matched by RE2, and
each check has a number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

__all__ = [
    "MAX_MATCHED",
    "MAX_SCHEMA_STEPS",
    "MAX_STEPS",
    "MAX_TEXT",
    "TooManySteps",
    "find_flaw",
    "list_faults",
]

#: Steps of a check. One takes 3 to 10 µs: a keyword, a schema within a schema, 16 members, 64 characters of a pattern's
#: text or a fault's.
MAX_STEPS = 200_000
#: Steps of the check of a schema itself. It is done on the event loop of the agent.
MAX_SCHEMA_STEPS = 20_000
#: Steps of what takes longer: a pattern to compile, and to match; a division of fractions.
COMPILE_STEPS, MATCH_STEPS = 100, 4
#: Characters of a text that a pattern is matched against.
MAX_MATCHED = 4096
#: Characters of a fault.
MAX_TEXT = 300
#: Keywords with schemas: one, in a list, or by names.
ONE = frozenset(
    {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
)
LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
#: Keywords whose work cannot be bounded by counting steps.
REFUSED = frozenset(
    {"$anchor", "$dynamicAnchor", "$dynamicRef", "unevaluatedItems", "unevaluatedProperties"}
)

_ALL = dict(Draft202012Validator.VALIDATORS)
_options = re2.Options()
_options.log_errors = False
#: Memory for a program of RE2 and its automaton, in bytes: then 4096 characters take some milliseconds at most.
_options.max_mem = 2**18
_left: ContextVar[list[int]] = ContextVar("a2a_schema_steps")
_encode = msgspec.json.Encoder(order="sorted").encode


class TooManySteps(Exception):
    """A check that would take too long."""

    def __init__(self) -> None:
        super().__init__("the check takes too many steps")


def list_faults(
    schema: Any, value: Any, most: int, *, steps: int = MAX_STEPS
) -> list[ValidationError]:
    """Return the first faults of a value, at most so many. Nothing that the schema refers to is fetched.

    Raises TooManySteps; for a schema with a flaw any exception.
    """
    with _count_steps(steps):
        return list(islice(_Values(schema, registry=Registry()).iter_errors(value), most))


def find_flaw(schema: Any) -> str:
    """Return what is wrong in a schema, after the path of the place; empty = nothing. Raises TooManySteps, RecursionError."""
    with _count_steps(MAX_SCHEMA_STEPS):
        meta = _Schemas(Draft202012Validator.META_SCHEMA)
        for fault in meta.iter_errors(schema):
            return f"{'.'.join(map(str, fault.absolute_path))}: {fault.message}"
        return next((f"{'.'.join(path)}: {flaw}" for path, flaw in _flaws(schema)), "")


@contextmanager
def _count_steps(steps: int) -> Iterator[None]:
    token = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(token)


def _spend(steps: int) -> None:
    left = _left.get()
    left[0] -= steps
    if left[0] < 0:
        raise TooManySteps


def _flaws(schema: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what jsonschema allows, and this module does not, with the path of the keyword."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while waiting:
        path, one = waiting.pop()
        for keyword, value in one.items() if isinstance(one, dict) else ():
            here = (*path, keyword)
            if keyword in ONE:
                waiting.append((here, value))
            elif keyword in LISTED:
                waiting += [((*here, str(number)), inner) for number, inner in enumerate(value)]
            elif keyword in NAMED:
                waiting += [((*here, name), inner) for name, inner in value.items()]
            if flaw := _flaw(keyword, value, is_root=not path):
                yield here, flaw


def _flaw(keyword: str, value: Any, *, is_root: bool) -> str:
    if keyword in REFUSED or (keyword == "$id" and not is_root):
        return "a form cannot have this keyword"
    if keyword == "$ref" and not _is_local(value):
        return "must be # or begin with #/"
    for pattern in {"pattern": [value], "patternProperties": value}.get(keyword, ()):
        try:
            _compile(pattern)
        except ValueError as fault:
            return str(fault)
    return ""


def _is_local(reference: str) -> bool:
    """Return whether a reference names its place: to find another one takes a walk over the whole schema."""
    return reference == "#" or reference.startswith("#/")


@lru_cache(maxsize=64)
def _compile(pattern: str) -> Any:
    """Return the pattern, for RE2, which needs linear time for each text.

    Raises ValueError for a pattern that RE2 refuses.
    """
    _spend(COMPILE_STEPS)
    try:
        return re2.compile(pattern, _options)
    except re2.error as fault:
        why = fault.args[0].decode(errors="replace") if fault.args else ""
        raise ValueError(f"{pattern!r:.{MAX_TEXT // 3}} is no pattern of RE2: {why}") from None


def _matches(pattern: str, text: str) -> bool:
    _spend(MATCH_STEPS + len(text) // 64)
    return bool(_compile(pattern).search(text))


def _check_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str):
        if len(value) > MAX_MATCHED:
            yield ValidationError(f"has more than {MAX_MATCHED} characters")
        elif not _matches(pattern, value):
            yield ValidationError(f"{value!r:.{MAX_TEXT // 2}} does not match {pattern!r}")


def _check_named(
    validator: Any, schemas: Mapping[str, Any], value: Any, _: Any
) -> Iterator[ValidationError]:
    """Yield the faults of members whose names match patterns."""
    for name, member in value.items() if isinstance(value, dict) else ():
        if schemas and len(name) > MAX_MATCHED:
            yield ValidationError(f"has a name of more than {MAX_MATCHED} characters")
            continue
        for pattern, schema in schemas.items():
            if _matches(pattern, name):
                yield from validator.descend(member, schema, path=name, schema_path=pattern)


def _check_others(
    validator: Any, wanted: Any, value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """Yield the faults of members that the schema does not name."""
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, member in value.items():
        if name in known or any(_matches(one, name[:MAX_MATCHED]) for one in patterns):
            continue
        if wanted is False:
            yield ValidationError(f"has no property {name!r:.{MAX_TEXT // 2}}")
        else:
            yield from validator.descend(member, wanted, path=name)


def _check_reference(
    validator: Any, reference: str, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not _is_local(reference):
        raise ValueError(f"{reference!r:.{MAX_TEXT // 2}} must be # or begin with #/")
    _spend(reference.count("/"))
    yield from _ALL["$ref"](validator, reference, value, schema)


def _find_doubles(_: Any, wanted: bool, value: Any, __: Any) -> Iterator[ValidationError]:
    """Yield the fault of a list with equal items. That of jsonschema compares each item with all others."""
    if wanted and isinstance(value, list) and len({*map(_encode, value)}) < len(value):
        yield ValidationError("has items that are equal")


def _divide(_: Any, unit: float, value: Any, __: Any) -> Iterator[ValidationError]:
    """Yield the fault of a number that is no multiple. That of jsonschema takes 0.07 for no multiple of 0.01."""
    _spend(MATCH_STEPS)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and _read_number(value) % _read_number(unit):
        yield ValidationError(f"{value!r:.{MAX_TEXT}} is not a multiple of {unit!r}")


def _read_number(value: float) -> Fraction:
    return Fraction(value if isinstance(value, int) else str(value))


def _count(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Return the function of a keyword, with its steps counted, and faults of a bounded length."""

    def check_and_count(
        validator: Any, wanted: Any, value: Any, schema: Any
    ) -> Iterator[ValidationError]:
        _spend(1 + (_size(wanted) + _size(value)) // 16)
        for fault in check(validator, wanted, value, schema) or ():
            _spend(len(fault.message) // 64)
            fault.message = fault.message[:MAX_TEXT]
            yield fault

    return check_and_count


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _make_validator(checks: Mapping[str, Any]) -> Any:
    """Return a class that counts its steps, with these functions of keywords.

    The validator of a schema within a schema is of the same class. With jsonschema's own `evolve`, it would be of the class
    that a `$schema` names.
    """
    made = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {name: _count(one) for name, one in checks.items()}
    )
    for keyword in made.VALIDATORS.keys() - checks.keys():
        del made.VALIDATORS[keyword]
    fields = [(field.name, field.alias) for field in made.__attrs_attrs__ if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        _spend(1)
        return made(
            **{alias: getattr(self, name) for name, alias in fields if alias not in changes},
            **changes,
        )

    made.evolve = evolve
    return made


_OWN: dict[str, Any] = {
    "$ref": _check_reference,
    "additionalProperties": _check_others,
    "multipleOf": _divide,
    "pattern": _check_pattern,
    "patternProperties": _check_named,
    "uniqueItems": _find_doubles,
}
#: Compares values with forms.
_Values = _make_validator({name: _ALL[name] for name in _ALL.keys() - REFUSED} | _OWN)
#: Compares forms with the schema of schemas.
_Schemas = _make_validator(_ALL)
