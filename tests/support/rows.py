"""The rows of a table, checked one after the other inside one test.

A case of `pytest.mark.parametrize` costs 5 to 40 ms before it does anything: fixtures, a transaction, a host. Rows that
need none of their own share those of one test. Each row that fails is reported by its name, and the others still run.
"""

from __future__ import annotations

import inspect
import itertools
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, TypeVar, cast

import pytest
from django.db import transaction

__all__ = ["rolled_back", "rows"]

Test = TypeVar("Test", bound=Callable[..., Any])


def rows(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Callable[[Any], object] | None = None,
    *,
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Callable[[Test], Test]:
    """Take the arguments of `pytest.mark.parametrize`; two of them on one test make a product, as there.

    Each row runs inside a context of its own, if one is given: with `rolled_back` it leaves no rows in the database.
    """
    keys = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    given = [_row(keys, value, ids) for value in values]
    assert given, "a table without rows checks nothing"

    def decorate(test: Test) -> Test:
        plain, others = getattr(test, "of_rows", (test, [("", {})]))
        table = [
            ("-".join(filter(None, (name, other))), row | more)
            for (other, more), (name, row) in itertools.product(others, given)
        ]

        @wraps(plain, updated=())  # what Hypothesis notes on a law is not true of the loop
        def run(*args: Any, subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, row in table:
                with subtests.test(name), within():
                    plain(*args, **fixtures, **row)

        @wraps(plain, updated=())
        async def run_async(*args: Any, subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, row in table:
                with subtests.test(name), within():
                    await plain(*args, **fixtures, **row)

        made: Any = run_async if inspect.iscoroutinefunction(plain) else run
        wanted = inspect.signature(plain).parameters.values()
        subtests = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        made.__signature__ = inspect.Signature(
            [*(p for p in wanted if p.name not in table[0][1]), subtests]
        )
        made.of_rows = (plain, table)
        made.pytestmark = getattr(test, "pytestmark", [])
        return cast("Test", made)

    return decorate


def _row(
    keys: Sequence[str], value: Any, ids: Callable[[Any], object] | None
) -> tuple[str, dict[str, Any]]:
    """The name of a row and its arguments."""
    param = value if isinstance(value, type(pytest.param())) else None
    found = param.values if param else (value if len(keys) > 1 else (value,))
    name = param.id if param and param.id else "-".join(_word(each, ids) for each in found)
    # Processes of one run tell each other the name, which must have no half surrogates.
    return str(name).encode(errors="backslashreplace").decode(), dict(zip(keys, found, strict=True))


def _word(value: Any, ids: Callable[[Any], object] | None) -> str:
    if ids is not None:
        return str(ids(value))
    return value if isinstance(value, str) and len(value) < 60 else reprlib.repr(value)


@contextmanager
def rolled_back() -> Iterator[None]:
    """Undo in the database what is done inside."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
