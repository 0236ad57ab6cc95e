"""From a question about a table to one SQL statement. Pure.

No character of the question or of the file gets into the SQL: the table is `t`, its columns are `c0`, `c1`, ... by
their place, and values are bound parameters. So there is nothing to escape and nothing to inject.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from examples.tables.faults import Unknown, Word
from examples.tables.questions import (
    Comparison,
    Condition,
    Empty,
    Joined,
    Measure,
    Negation,
    Operator,
    Show,
    Summary,
    Tail,
    Total,
)
from examples.tables.table import Table

__all__ = ["Statement", "statement"]

FUNCTIONS = {
    Total.SUM: "SUM",
    Total.AVERAGE: "AVG",
    Total.MIN: "MIN",
    Total.MAX: "MAX",
    Total.COUNT: "COUNT",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL, what is bound to it, and what its columns are called."""

    sql: str
    parameters: tuple[str | int | float, ...]
    columns: tuple[str, ...]


def statement(question: Show | Summary, table: Table) -> Statement:
    """Build the statement. Raises Unknown for a column that is not there, or is text where a number is needed."""
    builder = _Builder(table)
    return builder.show(question) if isinstance(question, Show) else builder.summary(question)


@dataclass(slots=True)
class _Builder:
    table: Table
    parameters: list[str | int | float] = field(default_factory=list)

    def show(self, question: Show) -> Statement:
        places = [self.table.index(word) for word in question.columns]
        places = places or list(range(len(self.table.columns)))
        selected = ", ".join(f'"c{place}"' for place in places)
        where = self._where(question.tail)
        order = question.tail.order
        by = f" ORDER BY {self._column(order.column)} COLLATE NOCASE" if order else ""
        by += " DESC" if order and order.descending else ""
        names = tuple(self.table.columns[place].name for place in places)
        return self._made(f'SELECT {selected} FROM "t"{where}{by}', question.tail, names)  # noqa: S608 - see above

    def summary(self, question: Summary) -> Statement:
        measured, label = self._measure(question.measure, charted=question.chart)
        where = self._where(question.tail)
        if question.by is None:
            return self._made(f'SELECT {measured} FROM "t"{where}', question.tail, (label,))  # noqa: S608 - see above
        group = self._column(question.by)
        name = self.table.columns[self.table.index(question.by)].name
        sql = f'SELECT {group}, {measured} FROM "t"{where} GROUP BY 1 ORDER BY {self._ordered(question, name)}'  # noqa: S608 - see above
        return self._made(sql, question.tail, (name, label))

    def _measure(self, measure: Measure, *, charted: bool) -> tuple[str, str]:
        if measure.column is None:
            return "COUNT(*)", "count"
        numeric = charted or measure.total in {Total.SUM, Total.AVERAGE}
        place = self.table.index(measure.column, numeric=numeric)
        label = f"{measure.total.value} of {self.table.columns[place].name}"
        return f'{FUNCTIONS[measure.total]}("c{place}")', label

    @staticmethod
    def _ordered(question: Summary, group: str) -> str:
        """Groups are ordered by themselves, or by what was measured of them."""
        order = question.tail.order
        if order is None:
            return "1 COLLATE NOCASE"
        column = question.measure.column
        measured = column.name if column else Total.COUNT.value
        direction = " DESC" if order.descending else ""
        # The measured first: in `count by x` a table may have a column "count" as well.
        for place, name in ((2, measured), (1, group)):
            if order.column.name.lower() == name.lower():
                return f"{place} COLLATE NOCASE{direction}"
        raise Unknown("column in this answer", order.column, [group, measured])

    def _column(self, word: Word) -> str:
        return f'"c{self.table.index(word)}"'

    def _where(self, tail: Tail) -> str:
        return f" WHERE {self._condition(tail.where)}" if tail.where else ""

    def _condition(self, condition: Condition) -> str:
        match condition:
            case Joined(connective, conditions):
                joined = f" {connective.value.upper()} ".join(map(self._condition, conditions))
                return f"({joined})"
            case Negation(inner):
                return f"NOT ({self._condition(inner)})"
            case Empty(column):
                return f"{self._column(column)} IS NULL"
            case Comparison():
                return self._comparison(condition)

    def _comparison(self, comparison: Comparison) -> str:
        column = self._column(comparison.column)
        if comparison.operator is Operator.CONTAINS:
            self.parameters.append(str(comparison.value))
            return f"INSTR(LOWER({column}), LOWER(?)) > 0"
        self.parameters.append(comparison.value)
        return f"{column} {comparison.operator.value} ? COLLATE NOCASE"

    def _made(self, sql: str, tail: Tail, columns: tuple[str, ...]) -> Statement:
        if tail.limit is not None:
            sql += " LIMIT ?"
            self.parameters.append(tail.limit)
        return Statement(sql, tuple(self.parameters), columns)
