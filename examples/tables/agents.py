"""An agent that answers questions about tables in a tiny language: text, rows as JSON, charts as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypedDict

from a2a_tasks.agents import Agent, AgentError, Message, Part, Skill, Turn, data, file, text
from a2a_tasks.agents.emission import Emission
from examples.tables.chart import Bar, bar_chart
from examples.tables.engine import MOST_ROWS, Result, carry_out
from examples.tables.faults import Fault, NoTable, Refused, Unknown
from examples.tables.layout import shown, text_table
from examples.tables.library import brought, is_csv, shipped
from examples.tables.parser import VERBS, parse
from examples.tables.questions import Columns, Help, Question, Show, Summary, Tables
from examples.tables.statement import statement
from examples.tables.table import Table, choose

__all__ = ["TablesAgent"]

TEXT, JSON, SVG = "text/plain", "application/json", "image/svg+xml"
MOST_BARS = 40
HELP = """I answer questions about tables, those I have and CSV files you send along:

    tables
    columns cities
    show cities where country = "Spain" order by population desc limit 5
    show name, population from cities where capital = yes and not area_km2 > 500
    sum population by country from cities
    count from cities where name contains "burg"
    chart population by country from cities order by population desc

Measures: sum, average, min, max, count. Names with blanks go in backticks."""


class Asked(TypedDict):
    """What was asked back, kept so that a single word is answer enough."""

    question: str
    at: int
    length: int
    options: list[str]
    guess: str


@dataclass
class Desk:
    """What lies on the table: the tables at hand, and the one in hand (kept in the turn's memory)."""

    tables: dict[str, Table]
    memory: dict[str, Any] = field(default_factory=dict)

    def take(self, question: Columns | Show | Summary) -> Table:
        """Take the table a question is about in hand. Raises Unknown and NoTable."""
        table = choose(self.tables, question.table, self.memory.get("table"))
        self.memory["table"] = table.name
        return table


class TablesAgent(Agent):
    """Synchronous: the host runs it in a thread, so that reading and SQLite block nobody."""

    slug = "tables"
    name = "Tables"
    description = (
        "Answers questions about tables (its own, and CSV files sent along), also as charts."
    )
    default_input_modes = (TEXT, "text/csv")
    default_output_modes = (TEXT, JSON, SVG)
    skills = (
        Skill(
            "query",
            "Query a table",
            "Filters, sorts and adds up rows; the answer is a text table and the rows as JSON.",
            tags=["csv", "data", "query"],
            examples=[
                "tables",
                'show cities where country = "Spain" order by population desc limit 5',
                "sum population by country from cities",
            ],
            output_modes=(TEXT, JSON),
        ),
        Skill(
            "chart",
            "Draw a chart",
            "Adds up a column by another one and draws bars, as an SVG file.",
            tags=["chart", "csv", "svg"],
            examples=["chart population by country from cities"],
        ),
    )

    def run(self, turn: Turn) -> Iterator[Emission]:
        """Answer one question, or ask back what is missing in it."""
        if not any(map(turn.wants, self.default_output_modes)):
            yield turn.reject(f"I answer in {TEXT}, {JSON} and {SVG} only.")
            return
        try:
            files = brought(_conversation(turn), lambda part: turn.read(part).now())
            for table in files.values():
                yield turn.working(f"Read {table.name}: {len(table.rows)} rows.")
            desk = Desk({**shipped(), **files}, turn.memory)
            if len(files) == 1:
                desk.memory.setdefault("table", next(iter(files)))
            yield from _answer(turn, desk, _question(turn))
        except Refused as fault:  # a limit: asking again would not help
            raise AgentError(str(fault)) from None


def _conversation(turn: Turn) -> list[Part]:
    """The parts of the message, after those of earlier ones if this turn continues a task.

    Files are not kept in memory (it is small): the task's history has them. What was asked back is always in
    memory, so an empty one means that this is the first message.
    """
    earlier: list[Message] = turn.history.now() if turn.memory else []
    parts = [part for message in earlier for part in message.parts if is_csv(part)]
    return [*parts, *(part for part in turn.parts if part not in parts)]


def _question(turn: Turn) -> str:
    """What is asked: the text that is no file, or the question asked back on, completed by the answer to it."""
    words = [p.text for p in turn.parts if isinstance(p.text, str) and not is_csv(p)]
    said = "\n".join(words).strip()
    asked: Asked | None = turn.memory.pop("asked", None)
    return _completed(asked, said, turn.memory) if asked else said


def _completed(asked: Asked, said: str, memory: dict[str, Any]) -> str:
    answer = asked["guess"] if said.lower() in {"yes", "y", "ok"} else said.strip("`\"'. ")
    chosen = next((o for o in asked["options"] if o.lower() == answer.lower()), None)
    if chosen is None:
        return said  # not an answer, so a new question
    if asked["at"] < 0:  # no table had been named
        memory["table"] = chosen
        return asked["question"]
    end = asked["at"] + asked["length"]
    return f"{asked['question'][: asked['at']]}{_quoted(chosen)}{asked['question'][end:]}"


def _quoted(name: str) -> str:
    return name if name in VERBS else f"`{name.replace('`', '``')}`"


def _answer(turn: Turn, desk: Desk, question: str) -> Iterator[Emission]:
    try:
        yield from _said(turn, desk, parse(question or "help"))
    except Refused:
        raise
    except (
        Fault
    ) as fault:  # the task waits for a better question, or for the word that mends this one
        turn.memory["asked"] = _asked(question, fault)
        yield turn.ask(str(fault))


def _asked(question: str, fault: Fault) -> Asked:
    match fault:
        case Unknown(word=word, options=options, guess=guess):
            return Asked(
                question=question,
                at=word.at,
                length=word.length,
                options=list(options),
                guess=guess,
            )
        case NoTable(options=options):
            return Asked(question=question, at=-1, length=0, options=list(options), guess="")
    return Asked(question=question, at=0, length=0, options=[], guess="")


def _said(turn: Turn, desk: Desk, question: Question) -> Iterator[Emission]:
    match question:
        case Help():
            yield from _table(turn, _list("table", desk), lead=HELP)
        case Tables():
            yield from _table(turn, _list("table", desk))
        case Columns():
            yield from _table(turn, _columns(desk.take(question)))
        case Show() | Summary():
            yield from _carried_out(turn, desk, question)


def _list(title: str, desk: Desk) -> Result:
    rows = [(name, len(table.rows), len(table.columns)) for name, table in desk.tables.items()]
    return Result((title, "rows", "columns"), tuple(rows))


def _columns(table: Table) -> Result:
    rows = tuple((column.name, column.type.value.lower()) for column in table.columns)
    return Result(("column", "type"), rows)


def _carried_out(turn: Turn, desk: Desk, question: Show | Summary) -> Iterator[Emission]:
    table = desk.take(question)
    charted = isinstance(question, Summary) and question.chart
    result = carry_out(
        statement(question, table),
        table,
        stopped=lambda: turn.cancelled,
        most_rows=MOST_BARS if charted else MOST_ROWS,
    )
    if charted and turn.wants(SVG):
        yield _chart(turn, table, result)
    yield from _table(turn, result)


def _chart(turn: Turn, table: Table, result: Result) -> Emission:
    by, measured = result.columns
    title = f"{table.name}: {measured} by {by}"
    bars = [
        Bar(shown(label) or "(empty)", float(value or 0), shown(value))
        for label, value in result.rows
        if not isinstance(value, str)
    ]
    svg = bar_chart(title, bars).encode()
    return turn.artifact(file(svg, "chart.svg", SVG), name="chart", description=title)


def _table(turn: Turn, result: Result, lead: str = "") -> Iterator[Emission]:
    """The rows, for people and for programs, as far as the client wants them."""
    if turn.wants(TEXT):
        table = text_table(result)
        yield turn.artifact(
            text(f"{lead}\n\n{table}" if lead else table, media_type=TEXT), name="table"
        )
    if turn.wants(JSON):
        rows = [list(row) for row in result.rows]
        found = {"columns": list(result.columns), "rows": rows, "truncated": result.truncated}
        yield turn.artifact(data(found), name="rows")
