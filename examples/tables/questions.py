"""What can be asked, as values: what the parser makes and the statement builder takes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from examples.tables.faults import Word

__all__ = [
    "Columns",
    "Comparison",
    "Condition",
    "Connective",
    "Empty",
    "Help",
    "Joined",
    "Measure",
    "Negation",
    "Operator",
    "Order",
    "Question",
    "Show",
    "Summary",
    "Tables",
    "Tail",
    "Total",
]


class Operator(enum.Enum):
    """How a column is compared; the value is how it is written."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    MORE = ">"
    MORE_OR_EQUAL = ">="
    CONTAINS = "contains"


class Connective(enum.Enum):
    """What joins two conditions."""

    AND = "and"
    OR = "or"


class Total(enum.Enum):
    """What is made of many numbers."""

    SUM = "sum"
    AVERAGE = "average"
    MIN = "min"
    MAX = "max"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`country = "Spain"`."""

    column: Word
    operator: Operator
    value: str | int | float


@dataclass(frozen=True, slots=True)
class Empty:
    """`area is empty`."""

    column: Word


@dataclass(frozen=True, slots=True)
class Negation:
    """`not ...`."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Joined:
    """`... and ...`, `... or ...`."""

    connective: Connective
    conditions: tuple[Condition, ...]


Condition = Comparison | Empty | Negation | Joined


@dataclass(frozen=True, slots=True)
class Order:
    """`order by population desc`."""

    column: Word
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What may stand at the end of a question."""

    where: Condition | None = None
    order: Order | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """`sum population`; a count has no column."""

    total: Total
    column: Word | None = None


@dataclass(frozen=True, slots=True)
class Help:
    """`help`."""


@dataclass(frozen=True, slots=True)
class Tables:
    """`tables`."""


@dataclass(frozen=True, slots=True)
class Columns:
    """`columns cities`."""

    table: Word | None


@dataclass(frozen=True, slots=True)
class Show:
    """`show name, population from cities where ...`; no columns = all."""

    table: Word | None
    columns: tuple[Word, ...]
    tail: Tail


@dataclass(frozen=True, slots=True)
class Summary:
    """`sum population by country from cities`, as numbers or as a chart."""

    table: Word | None
    measure: Measure
    by: Word | None
    tail: Tail
    chart: bool = False


Question = Help | Tables | Columns | Show | Summary
