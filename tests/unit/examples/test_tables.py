"""The example agent `tables`: its language, its limits, its answers, and what it asks back."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_tasks.agents import AgentError, Part, file, link, registry, text
from a2a_tasks.agents.emission import Status
from a2a_tasks.protocol.values import TaskState
from examples.tables.agents import TablesAgent
from examples.tables.chart import Bar, bar_chart
from examples.tables.engine import Result, carry_out
from examples.tables.faults import Fault, Misread, Refused, Unknown, Word
from examples.tables.layout import text_table
from examples.tables.library import shipped
from examples.tables.parser import DEEPEST, VERBS, parse
from examples.tables.questions import (
    Columns,
    Comparison,
    Connective,
    Empty,
    Help,
    Joined,
    Measure,
    Negation,
    Operator,
    Order,
    Question,
    Show,
    Summary,
    Tables,
    Tail,
    Total,
)
from examples.tables.statement import Statement, statement
from examples.tables.table import Column, Table, Type, read_csv, table_name
from tests.support.examples.turns import Conversation, heard, make_turn

SHOP = b"item,price,sold\nred tea,3.5,10\ngreen tea,4,\ncoffee,6.25,7\n"
SVG = "{http://www.w3.org/2000/svg}"
#: Names and values as an enemy would choose them.
HOSTILE = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30
) | st.sampled_from(
    [
        '"; DROP TABLE t; --',
        "' OR 1=1 --",
        'c0"',
        "t",
        "sqlite_master",
        "`a` from t",
        "?",
        "\\",
        "/*",
        "a\0b",
        "select",
        "where",
        "%s %(x)s {0}",
    ]
)


def word(name: str) -> Any:
    """A Word of that name, wherever it stands."""
    return _Named(name)


class _Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def rows(question: str, table: Table | None = None) -> list[tuple[Any, ...]]:
    """Ask the table (or the shipped one of that name) directly."""
    asked = parse(question)
    assert isinstance(asked, Show | Summary)
    if table is None:
        assert asked.table is not None
        table = shipped()[asked.table.name]
    return list(carry_out(statement(asked, table), table).rows)


def quoted(name: str) -> str:
    """A name in backticks."""
    return f"`{name.replace('`', '``')}`"


class TestParser:
    @pytest.mark.parametrize(
        ("question", "meant"),
        [
            ("help", Help()),
            (" TABLES\n", Tables()),
            ("columns", Columns(None)),
            ("columns cities", Columns(word("cities"))),
            ("show cities", Show(word("cities"), (), Tail())),
            ("show", Show(None, (), Tail())),
            ("show a, b", Show(None, (word("a"), word("b")), Tail())),
            ("show a from t", Show(word("t"), (word("a"),), Tail())),
            ("show `two words`", Show(word("two words"), (), Tail())),
            ("show `a``b`", Show(word("a`b"), (), Tail())),
            ("show t limit 5", Show(word("t"), (), Tail(limit=5))),
            ("show t order by a", Show(word("t"), (), Tail(order=Order(word("a"))))),
            ("show t order by a DESC", Show(word("t"), (), Tail(order=Order(word("a"), True)))),
            (
                "sum a by b from t",
                Summary(word("t"), Measure(Total.SUM, word("a")), word("b"), Tail()),
            ),
            ("count", Summary(None, Measure(Total.COUNT), None, Tail())),
            (
                "chart a by b",
                Summary(None, Measure(Total.SUM, word("a")), word("b"), Tail(), chart=True),
            ),
            (
                "chart max a by b",
                Summary(None, Measure(Total.MAX, word("a")), word("b"), Tail(), chart=True),
            ),
            (
                "chart sum by b",  # a column may be called sum
                Summary(None, Measure(Total.SUM, word("sum")), word("b"), Tail(), chart=True),
            ),
            (
                "chart count by b",
                Summary(None, Measure(Total.COUNT), word("b"), Tail(), chart=True),
            ),
        ],
    )
    def test_reads_every_form(self, question: str, meant: Question) -> None:
        assert meant == parse(question)

    @pytest.mark.parametrize(
        ("condition", "meant"),
        [
            ('a = "x"', Comparison(word("a"), Operator.EQUAL, "x")),
            ("a = 'it''s'", Comparison(word("a"), Operator.EQUAL, "it's")),
            ("a = x", Comparison(word("a"), Operator.EQUAL, "x")),
            ("a <> -2.5", Comparison(word("a"), Operator.UNEQUAL, -2.5)),
            ("a>=3", Comparison(word("a"), Operator.MORE_OR_EQUAL, 3)),
            ('a contains ""', Comparison(word("a"), Operator.CONTAINS, "")),
            ("a is empty", Empty(word("a"))),
            ("a is not empty", Negation(Empty(word("a")))),
            ("not a is empty", Negation(Empty(word("a")))),
        ],
    )
    def test_reads_every_condition(self, condition: str, meant: object) -> None:
        question = parse(f"show t where {condition}")
        assert isinstance(question, Show)
        assert meant == question.tail.where

    def test_and_binds_closer_than_or(self) -> None:
        question = parse("show t where a = 1 or b = 2 and not (c = 3 or d = 4)")
        assert isinstance(question, Show)
        a, b, c, d = (
            Comparison(word(n), Operator.EQUAL, v)
            for n, v in zip("abcd", (1, 2, 3, 4), strict=True)
        )
        right = Joined(Connective.AND, (b, Negation(Joined(Connective.OR, (c, d)))))
        assert Joined(Connective.OR, (a, right)) == question.tail.where

    @pytest.mark.parametrize(
        ("question", "at", "expected"),
        [
            ("= 3", 0, "one of help, tables"),
            ("columns a b", 10, "the end"),
            ("show a,", 7, "a column"),
            ("show a from where", 12, "a table"),
            ("show a where", 12, 'a column, "not" or "("'),
            ("show a where b", 14, "a comparison"),
            ("show a where b =", 16, "a value"),
            ("show a where b = and", 17, "a value"),
            ("show a where (b = 1", 19, '")"'),
            ("show a where b is 5", 18, '"empty"'),
            ("show a where b = 1 c", 19, '"and", "or"'),
            ("show a order b", 13, '"by"'),
            ("show a order by b down", 18, '"limit" or the end'),
            ("show a limit many", 13, "how many rows"),
            ("show a limit 1.5", 13, "how many rows"),
            ("show a limit -1", 13, "how many rows"),
            ("show a limit 5 5", 15, "the end"),
            ("sum by a", 4, "a column"),
            ("chart a", 7, '"by"'),
            ('show a where b = "x', 17, "a closing quote"),
            ("show a; drop", 6, "a word, number or quote"),
        ],
    )
    def test_tells_where_it_was_lost_and_what_it_expected(
        self, question: str, at: int, expected: str
    ) -> None:
        with pytest.raises(Misread) as lost:
            parse(question)
        assert lost.value.at == at
        assert lost.value.expected.startswith(expected)
        assert f"character {at + 1}" in str(lost.value)

    def test_points_at_the_place_also_in_a_long_question_of_several_lines(self) -> None:
        with pytest.raises(Misread) as lost:
            parse("show a where\n" + "b = 1 and\t" * 20 + "!!")
        shown, caret = str(lost.value).splitlines()[-2:]
        assert shown[caret.index("^")] == "!"

    def test_guesses_the_verb_that_was_meant(self) -> None:
        with pytest.raises(Unknown, match="Did you mean tables"):
            parse("tabels")

    def test_refuses_what_is_nested_too_deep_or_too_long(self) -> None:
        parse(f"show t where {'(' * (DEEPEST - 1)}a = 1{')' * (DEEPEST - 1)}")
        for condition in ("(" * DEEPEST + "a = 1", "not " * DEEPEST + "a = 1", "a = 1 or " * 500):
            with pytest.raises(Refused):
                parse(f"show t where {condition}")

    @given(st.text() | st.lists(st.sampled_from([*VERBS, "by", "(", "a", "=", "where", "1", '"'])))
    @example("\0")
    @example("9" * 1999)
    def test_either_understands_or_says_why_not(self, said: str | list[str]) -> None:
        try:
            parse(said if isinstance(said, str) else " ".join(said))
        except Fault as fault:
            assert str(fault)

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("9007199254740992", 2**53),
            ("9007199254740993", float(2**53)),
            ("9" * 500, 1.7e308),
            ("-" + "9" * 500, -1.7e308),
        ],
    )
    def test_numbers_stay_what_every_json_reader_can_keep(self, written: str, meant: float) -> None:
        question = parse(f"show t where a = {written}")
        assert isinstance(question, Show)
        assert isinstance(question.tail.where, Comparison)
        assert question.tail.where.value == meant


class TestReadCSV:
    def test_finds_the_type_of_each_column(self) -> None:
        table = read_csv("t", b"a,b,c,d,e\n1,1.5,x,,007\n-2,3,4,,8\n,,,,\n")
        assert [column.type for column in table.columns] == [
            Type.INTEGER,
            Type.REAL,
            Type.TEXT,
            Type.TEXT,
            Type.TEXT,  # a code, not a number
        ]
        assert table.rows == ((1, 1.5, "x", None, "007"), (-2, 3.0, "4", None, "8"))

    def test_takes_what_spreadsheets_write(self) -> None:
        table = read_csv("t", '\ufeffname;"size; in m"\r\n"a ""b"";c";2\r\n\r\nshort\r\n'.encode())
        assert [column.name for column in table.columns] == ["name", "size; in m"]
        assert table.rows == (('a "b";c', 2), ("short", None))

    def test_a_nameless_column_gets_a_name(self) -> None:
        assert [c.name for c in read_csv("t", b"a,,c\n").columns] == ["a", "column 2", "c"]

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"", "empty"),
            (b"\n\n", "empty"),
            (b"\xff\xfe\x00", "UTF-8"),
            (b'a\n"never closed', "not readable as CSV"),
            (b"a,A\n", "two columns are called 'a'"),
            (b"a,b\n1,2,3\n", "row 1 has 3 cells, the header has 2"),
            (b"a," * 64 + b"z\n", "at most 64 columns"),
            (b"a\n" + b"1\n" * 20_001, "at most 20,000 rows"),
            (b"a\n" + b"1" * 2_000_000, "at most 2,000,000 bytes"),
            (b"a\n" + b"x" * 140_000, "not readable as CSV"),
        ],
    )
    def test_refuses_what_is_no_table_and_says_why(self, content: bytes, why: str) -> None:
        with pytest.raises(Refused, match=re.escape(why)):
            read_csv("t", content)

    @given(
        st.binary(max_size=200) | st.text(max_size=200).map(lambda s: s.encode("utf-8", "ignore"))
    )
    def test_either_reads_or_refuses(self, content: bytes) -> None:
        try:
            table = read_csv("t", content)
        except Refused:
            return
        assert all(len(row) == len(table.columns) for row in table.rows)
        json.dumps(table.rows, allow_nan=False)

    @pytest.mark.parametrize(
        ("filename", "name"),
        [
            ("Sales 2024.CSV", "sales_2024"),
            ("2024.csv", "file_2024"),
            ("../../etc/passwd", "etc_passwd"),
            ("???", "file"),
            (None, "file"),
        ],
    )
    def test_a_file_name_becomes_a_name_without_quotes(
        self, filename: str | None, name: str
    ) -> None:
        assert table_name(filename) == name


class TestStatement:
    def test_shows_filters_sorts_and_limits(self) -> None:
        question = 'show name, population from cities where country = "spain" order by population desc limit 2'
        assert rows(question) == [("Madrid", 3280000), ("Barcelona", 1660000)]

    @pytest.mark.parametrize(
        ("condition", "count"),
        [
            ("moons = 0", 2),
            ("moons != 0", 6),
            ("moons > 28", 2),
            ("moons >= 28", 3),
            ("kind = Rocky", 4),
            ('name contains "U"', 6),
            ("name contains U and kind = giant", 4),
            ("not kind = giant or name = Uranus", 5),
            ("not (kind = giant or moons = 0)", 2),
            ("name is empty", 0),
            ("name is not empty", 8),
            ('radius_km < "3000"', 1),
            ("name > N", 4),
        ],
    )
    def test_conditions_mean_what_they_say(self, condition: str, count: int) -> None:
        assert rows(f"count from planets where {condition}") == [(count,)]

    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            ("sum moons from planets", [(288,)]),
            ("average moons by kind from planets", [("giant", 71.25), ("rocky", 0.75)]),
            ("max name from planets", [("Venus",)]),
            ("min radius_km by kind from planets", [("giant", 24622), ("rocky", 2440)]),
            ("count by kind from planets where moons > 1", [("giant", 4), ("rocky", 1)]),
            ("count by kind from planets order by kind desc", [("rocky", 4), ("giant", 4)]),
            ("sum moons by kind from planets order by moons", [("rocky", 3), ("giant", 285)]),
            ("sum moons by kind from planets order by moons desc limit 1", [("giant", 285)]),
            ("sum moons from planets where name = Pluto", [(None,)]),
        ],
    )
    def test_adds_up(self, question: str, answer: list[tuple[Any, ...]]) -> None:
        assert rows(question) == answer

    @pytest.mark.parametrize(
        ("question", "options"),
        [
            ("show nam from planets", "name"),
            ("show planets where nam = 1", "name"),
            ("show planets order by nam", "name"),
            ("count by nam from planets", "name"),
            ("sum moons by kind from planets order by name", "moons"),
        ],
    )
    def test_a_column_that_is_not_there_is_told_with_those_that_are(
        self, question: str, options: str
    ) -> None:
        with pytest.raises(Unknown) as unknown:
            rows(question)
        assert options in unknown.value.options

    @pytest.mark.parametrize("question", ["sum name", "average name", "chart max name by kind"])
    def test_texts_cannot_be_added_up(self, question: str) -> None:
        with pytest.raises(Unknown) as unknown:
            rows(f"{question} from planets")
        assert unknown.value.options == ("radius_km", "moons", "year_days")

    @given(HOSTILE, HOSTILE, HOSTILE, st.sampled_from(["=", "!=", "<", "contains"]))
    def test_nothing_of_question_or_file_gets_into_the_sql(
        self, table_name: str, column: str, value: str, sign: str
    ) -> None:
        table = Table(table_name, (Column(column, Type.TEXT),), ((value,), ("other",)))
        text_value = '"' + value.replace('"', '""') + '"'
        question = parse(
            f"show {quoted(column)} from {quoted(table_name)} "
            f"where {quoted(column)} {sign} {text_value} order by {quoted(column)} limit 9"
        )
        assert isinstance(question, Show)
        made = statement(question, table)
        pattern = (
            r'SELECT "c0" FROM "t" WHERE (INSTR\(LOWER\("c0"\), LOWER\(\?\)\) > 0|"c0" (=|!=|<) \? COLLATE NOCASE)'
            r' ORDER BY "c0" COLLATE NOCASE LIMIT \?'
        )
        assert re.fullmatch(pattern, made.sql)
        assert made.parameters == (value, 9)
        found = carry_out(made, table)
        assert found.columns == (column,)
        if sign == "=":
            assert (value,) in found.rows

    @given(HOSTILE, HOSTILE)
    def test_hostile_names_and_values_are_counted_like_any_other(
        self, column: str, value: str
    ) -> None:
        table = Table("t", (Column(column, Type.TEXT),), ((value,), (value,)))
        assert rows(f"count by {quoted(column)}", table) == [(value, 2)]


class TestEngine:
    def test_tells_that_there_would_be_more_rows(self) -> None:
        table = Table("t", (Column("a", Type.INTEGER),), tuple((n,) for n in range(201)))
        found = carry_out(Statement('SELECT "c0" FROM "t"', (), ("a",)), table)
        assert (len(found.rows), found.truncated) == (200, True)

    SLOW = Statement(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n",
        (),
        ("x",),
    )
    EMPTY = Table("t", (Column("a", Type.INTEGER),), ())

    def test_a_slow_statement_is_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("examples.tables.engine.READING", {21, 20, 31, 33})  # also recursion
        with pytest.raises(Refused, match="longer than 0 seconds"):
            carry_out(self.SLOW, self.EMPTY, seconds=0)

    def test_a_cancelled_statement_is_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("examples.tables.engine.READING", {21, 20, 31, 33})
        with pytest.raises(Refused):
            carry_out(self.SLOW, self.EMPTY, stopped=lambda: True, seconds=60)

    @pytest.mark.parametrize(
        "sql",
        [
            'DELETE FROM "t"',
            'DROP TABLE "t"',
            "ATTACH 'other.sqlite3' AS x",
            "PRAGMA table_info(t)",
            "CREATE TABLE x (a)",
            SLOW.sql,
        ],
    )
    def test_only_reading_is_allowed_whatever_the_statement(self, sql: str) -> None:
        with pytest.raises(Exception, match=r"not authorized|prohibited"):
            carry_out(Statement(sql, (), ()), self.EMPTY)

    @pytest.mark.parametrize(
        "column",
        [
            Table("t", (Column("a", Type.INTEGER),), ((2**63 - 1,), (1,))),
            Table("t", (Column("a", Type.REAL),), ((1.7e308,), (1.7e308,))),
        ],
    )
    def test_a_sum_beyond_numbers_is_refused(self, column: Table) -> None:
        with pytest.raises(Refused, match="too large"):
            rows("sum a", column)


class TestTextTable:
    def test_lines_up(self) -> None:
        shown = text_table(Result(("name", "size"), (("a", 1200), ("long name", None))))
        assert shown.splitlines() == [
            "name        size",
            "---------  -----",
            "a          1,200",
            "long name",
            "(2 rows)",
        ]

    def test_keeps_every_row_on_one_line(self) -> None:
        shown = text_table(Result(("a",), (("x\ny\r" + "z" * 100,),), truncated=True))
        lines = shown.splitlines()
        assert len(lines) == 4
        assert lines[2] == f"x y {'z' * 55}…"
        assert lines[3] == "(the first 1 row; there are more)"


class TestBarChart:
    def drawn(self, *bars: Bar, title: str = "t") -> ElementTree.Element:
        """Draw and read it back as XML."""
        return ElementTree.fromstring(bar_chart(title, bars))  # noqa: S314 - our own

    def bars(self, *values: float) -> list[tuple[float, float]]:
        """Where bars of these values are drawn: from and to."""
        svg = self.drawn(*(Bar("b", value, "v") for value in values))
        found = [rect.attrib for rect in svg.iter(f"{SVG}rect")][1:]
        return [(float(at["x"]), float(at["x"]) + float(at["width"])) for at in found]

    def test_bars_are_as_long_as_their_values(self) -> None:
        assert self.bars(2, 1, 0) == [(160, 620), (160, 390), (160, 160)]

    def test_negative_bars_go_left_of_a_common_zero(self) -> None:
        assert self.bars(1, -1) == [(390, 620), (160, 390)]

    def test_the_largest_numbers_and_none_at_all_are_drawn(self) -> None:
        assert self.bars(1.7e308, -1.7e308) == [(390, 620), (160, 390)]
        assert self.bars() == []

    @given(HOSTILE, HOSTILE)
    @example("</title><script>alert(1)</script>", '" onload="x')
    def test_labels_stay_text(self, title: str, label: str) -> None:
        svg = self.drawn(Bar(label, 1, label), title=title)
        assert {element.tag for element in svg.iter()} <= {
            f"{SVG}{tag}" for tag in ("svg", "title", "rect", "text")
        }
        assert not [name for element in svg.iter() for name in element.attrib if name[:2] == "on"]


@pytest.fixture
def talk() -> Conversation:
    """A conversation with the agent."""
    return Conversation(TablesAgent())


def csv_part(content: bytes = SHOP, filename: str = "shop.csv") -> Part:
    """A CSV file as a client sends it."""
    return file(content, filename, "text/csv")


class TestAgent:
    async def test_lists_its_tables(self, talk: Conversation) -> None:
        await talk.say("tables")
        assert talk.state is TaskState.COMPLETED
        assert talk.artifact("rows").data["rows"] == [["cities", 24, 5], ["planets", 8, 5]]

    async def test_lists_the_columns_of_a_table(self, talk: Conversation) -> None:
        await talk.say("columns planets")
        assert ["moons", "integer"] in talk.artifact("rows").data["rows"]

    @pytest.mark.parametrize("said", ["help", ""])
    async def test_explains_itself_also_to_who_says_nothing(
        self, talk: Conversation, said: str
    ) -> None:
        await talk.say(said)
        assert "chart population by country" in str(talk.artifact("table").text)

    async def test_every_line_of_its_help_and_its_card_works(self, talk: Conversation) -> None:
        await talk.say("help")
        examples = re.findall(r"^    (.+)$", str(talk.artifact("table").text), flags=re.MULTILINE)
        examples += [example for skill in TablesAgent.skills for example in skill.examples]
        assert len(examples) == 11
        for said in examples:
            talk = Conversation(TablesAgent())
            await talk.say(said)
            assert talk.state is TaskState.COMPLETED

    async def test_answers_with_a_text_table_and_the_rows(self, talk: Conversation) -> None:
        await talk.say('show name, population from cities where country = "Portugal"')
        assert talk.artifacts == ["table", "rows"]
        assert "Lisbon     546,000" in str(talk.artifact("table").text)
        assert talk.artifact("rows").data == {
            "columns": ["name", "population"],
            "rows": [["Lisbon", 546000], ["Porto", 232000]],
            "truncated": False,
        }

    async def test_draws_a_chart_as_a_file(self, talk: Conversation) -> None:
        await talk.say("chart population by country from cities order by population desc")
        chart = talk.artifact("chart")
        assert (chart.filename, chart.media_type) == ("chart.svg", "image/svg+xml")
        svg = ElementTree.fromstring(base64.b64decode(str(chart.raw)))  # noqa: S314 - our own
        labels = [element.text for element in svg.iter(f"{SVG}text")]
        assert labels[0] == "cities: sum of population by country"
        assert labels[1:3] == ["Germany", "8,092,000"]
        assert talk.artifacts == ["chart", "table", "rows"]

    async def test_a_chart_has_as_many_bars_as_can_be_read(self, talk: Conversation) -> None:
        many = b"a,b\n" + b"".join(b"%d,1\n" % n for n in range(50))
        await talk.say("chart b by a", csv_part(many))
        assert len(talk.artifact("rows").data["rows"]) == 40
        assert talk.artifact("rows").data["truncated"] is True

    @pytest.mark.parametrize(
        ("wanted", "artifacts"),
        [
            (("application/json",), ["rows"]),
            (("text/*",), ["table"]),
            (("image/svg+xml",), ["chart"]),
            (("*/*",), ["chart", "table", "rows"]),
        ],
    )
    async def test_sends_only_what_the_client_wants(
        self, wanted: tuple[str, ...], artifacts: list[str]
    ) -> None:
        talk = Conversation(TablesAgent(), accepted_output_modes=wanted)
        await talk.say("chart moons by kind from planets")
        assert talk.artifacts == artifacts

    async def test_rejects_who_wants_nothing_it_has(self) -> None:
        talk = Conversation(TablesAgent(), accepted_output_modes=("audio/mpeg",))
        await talk.say("tables")
        assert talk.state is TaskState.REJECTED

    async def test_is_hosted_and_in_order(self) -> None:
        assert isinstance(registry.hosted("tables"), TablesAgent)
        assert TablesAgent().synchronous
        assert list(TablesAgent().check()) == []


class TestAskingBack:
    async def test_a_word_or_a_yes_is_answer_enough(self, talk: Conversation) -> None:
        await talk.say("show citys where contry = Portugal")
        assert "no table 'citys'. Did you mean cities?" in talk.question
        await talk.say("yes")
        assert "no column of cities 'contry'. Did you mean country?" in talk.question
        await talk.say("Country")
        assert talk.state is TaskState.COMPLETED
        assert len(talk.artifact("rows").data["rows"]) == 2

    async def test_a_mended_verb_is_understood(self, talk: Conversation) -> None:
        await talk.say("colums planets")
        await talk.say("yes")
        assert talk.artifact("rows").data["columns"] == ["column", "type"]

    async def test_a_whole_new_question_is_taken_as_one(self, talk: Conversation) -> None:
        await talk.say("show citys")
        await talk.say("count from planets")
        assert talk.artifact("rows").data["rows"] == [[8]]

    async def test_the_table_stays_in_hand(self, talk: Conversation) -> None:
        await talk.say("sum moon from planets")
        await talk.say("count where moons = 0")
        assert talk.artifact("rows").data["rows"] == [[2]]

    async def test_a_question_without_a_table_is_asked_which(self, talk: Conversation) -> None:
        await talk.say("sum moons by kind order by moons")
        assert talk.question == "Of which table? There is: cities, planets."
        await talk.say("planets.")
        assert talk.artifact("rows").data["rows"] == [["rocky", 3], ["giant", 285]]

    async def test_bad_syntax_is_pointed_at_and_may_be_said_again(self, talk: Conversation) -> None:
        await talk.say("show planets limit few")
        assert "character 20: expected how many rows, found 'few'" in talk.question
        await talk.say("show planets limit 1")
        assert talk.artifact("rows").data["rows"][0][0] == "Mercury"

    async def test_what_is_asked_back_is_small_json(self, talk: Conversation) -> None:
        for said in ("show citys", "nonsense", "show", '"', "count by x from cities"):
            await talk.say(said)
            assert talk.state is TaskState.INPUT_REQUIRED
            assert len(json.dumps(talk.memory)) < 1000


class TestFiles:
    async def test_a_file_sent_along_is_in_hand(self, talk: Conversation) -> None:
        said = await talk.say("sum price", csv_part())
        assert said[0] == Status(TaskState.WORKING, (text("Read shop: 3 rows."),))
        assert talk.artifact("rows").data["rows"] == [[13.75]]

    async def test_a_file_may_be_text(self, talk: Conversation) -> None:
        await talk.say("tables", text(SHOP.decode(), media_type="text/csv; charset=utf-8"))
        assert ["file", 3, 3] in talk.artifact("rows").data["rows"]

    async def test_a_file_is_still_there_in_the_next_turn(self, talk: Conversation) -> None:
        await talk.say("sum prise", csv_part())
        assert "Did you mean price?" in talk.question
        assert SHOP.decode() not in json.dumps(talk.memory)
        await talk.say("yes")
        assert talk.artifact("rows").data["rows"] == [[13.75]]

    async def test_its_empty_cells_are_empty(self, talk: Conversation) -> None:
        await talk.say("show item where sold is empty", csv_part())
        await talk.say("show item from shop where sold is empty", csv_part())
        assert talk.artifact("rows").data["rows"] == [["green tea"]]

    async def test_a_file_alone_gets_an_explanation(self, talk: Conversation) -> None:
        await talk.say(csv_part())
        assert ["shop", 3, 3] in talk.artifact("rows").data["rows"]

    @pytest.mark.parametrize(
        ("part", "why"),
        [
            (csv_part(b""), "shop: the file is empty"),
            (link("https://example.com/x.csv", media_type="text/csv"), "fetches nothing"),
        ],
    )
    async def test_what_cannot_be_read_fails_with_the_reason(self, part: Part, why: str) -> None:
        with pytest.raises(AgentError, match=why):
            await heard(TablesAgent(), make_turn("tables", part))

    async def test_too_many_files_are_refused(self) -> None:
        with pytest.raises(AgentError, match="At most 5 files"):
            await heard(TablesAgent(), make_turn("tables", *[csv_part()] * 6))
