"""The example agent `tables`: what it reads, what it answers, what it asks back, and its limits."""

from __future__ import annotations

import base64
from typing import Any
from xml.etree import ElementTree

import pytest

from a2a_tasks.agents import Part, Turn, file, link, registry, text
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.testing import AgentAnswer, Talk
from examples.tables import agents
from examples.tables.agents import TablesAgent
from tests.support.rows import rows

CITIES = b"name,country,population\nMadrid,Spain,3280000\nPorto,Portugal,232000\nLisbon,Portugal,546000\n"
PEOPLE = "SELECT country, sum(population) AS people FROM data GROUP BY country ORDER BY people DESC"
SVG = "{http://www.w3.org/2000/svg}"
#: Joins that would take hours.
ENDLESS = "SELECT count(*) FROM data a, data b, data c, data d"


@pytest.fixture
def talk() -> Talk:
    """A conversation with the agent."""
    return Talk(TablesAgent)


def csv_part(content: bytes = CITIES) -> Part:
    """A CSV file as a client sends it."""
    return file(content, "cities.csv", "text/csv")


async def found(sql: str, content: bytes = CITIES) -> Any:
    """The rows of an answer."""
    talk = Talk(TablesAgent)
    answer = await talk.say(sql, csv_part(content))
    assert answer.state is TaskState.COMPLETED
    return answer.artifacts["rows"][0].data["rows"]


async def asked_back(sql: str, content: bytes = CITIES) -> str:
    """What it asks in place of an answer."""
    talk = Talk(TablesAgent)
    answer = await talk.say(sql, csv_part(content))
    return answer.text


def drawn(answer: AgentAnswer) -> ElementTree.Element:
    """The chart, read as XML."""
    svg = base64.b64decode(str(answer.artifacts["chart"][0].raw))
    return ElementTree.fromstring(svg)  # noqa: S314 - our own


class TestAgent:
    async def test_answers_with_a_text_table_the_rows_and_a_chart(self, talk: Talk) -> None:
        answer = await talk.say(PEOPLE, csv_part())
        assert answer.state is TaskState.COMPLETED
        assert list(answer.artifacts) == ["table", "rows", "chart"]
        assert str(answer.artifacts["table"][0].text).splitlines() == [
            "country   people",
            "--------  -------",
            "Spain     3280000",
            "Portugal  778000",
            "(2 rows)",
        ]
        assert answer.artifacts["rows"][0].data == {
            "columns": ["country", "people"],
            "rows": [["Spain", 3280000], ["Portugal", 778000]],
            "more": False,
        }
        widths = [float(bar.attrib["width"]) for bar in drawn(answer).iter(f"{SVG}rect")]
        assert widths == [400.0, 94.9]

    async def test_draws_no_chart_without_numbers(self, talk: Talk) -> None:
        answer = await talk.say("SELECT population, name FROM data", csv_part())
        assert list(answer.artifacts) == ["table", "rows"]

    @rows("wanted, artifacts", [("application/json", ["rows"]), ("image/*", ["chart"])])
    async def test_sends_only_what_the_client_wants(
        self, wanted: str, artifacts: list[str]
    ) -> None:
        talk = Talk(TablesAgent, accepted_output_modes=(wanted,))
        answer = await talk.say(PEOPLE, csv_part())
        assert list(answer.artifacts) == artifacts

    async def test_answers_the_example_of_its_card(self, talk: Talk) -> None:
        (skill,) = TablesAgent.skills
        answer = await talk.say(*skill.examples, csv_part())
        assert answer.state is TaskState.COMPLETED

    async def test_shows_what_others_wrote_as_text(self, talk: Talk) -> None:
        evil = b'a,b\n"</text><script>alert(1)</script>",1\n"x\x00\x1b\ny",-1.7e308\n'
        answer = await talk.say("SELECT * FROM data", csv_part(evil))
        svg = drawn(answer)
        assert {element.tag for element in svg.iter()} == {
            f"{SVG}{t}" for t in ("svg", "text", "rect")
        }
        assert "x   y" in {element.text for element in svg.iter()}
        assert str(answer.artifacts["table"][0].text).count("\n") == 4

    async def test_is_hosted_and_in_order(self) -> None:
        assert isinstance(registry.find_hosted("tables"), TablesAgent)
        assert TablesAgent().synchronous
        assert list(TablesAgent().check()) == []


class TestFiles:
    @rows(
        "content, cells",
        [
            (b"a;b\n1;x\n", [[1, "x"]]),
            (b"\xef\xbb\xbfa,b\r\n 2.5 ,\r\n\r\n", [[2.5, None]]),
            (b'a,b\n"1,5","x\ny"\n', [["1,5", "x\ny"]]),
            (b"a,b\n", []),
        ],
    )
    async def test_are_read_as_they_are_written(self, content: bytes, cells: object) -> None:
        assert await found("SELECT * FROM data", content) == cells

    async def test_may_have_columns_of_any_name(self) -> None:
        assert await found('SELECT "a""b", "column 2" FROM data', b'"a""b",\n1,2\n') == [[1, 2]]

    @rows(
        "content, why",
        [
            (b"", "The file is empty"),
            (b"a,b\n1,2\n1\n", "Row 2 is not as long as the header"),
            (b"a,A\n1,2\n", "duplicate column name: A"),
            (b'a\n"1', "unexpected end of data"),
            (b"a\n\xff\n", "'utf-8' codec can't decode"),
            (b"a\n" + b"x" * 10_001, "too big"),
            (b"a\n" + b"1\n" * 500_000, "The file has more than 1,000,000 bytes"),
        ],
    )
    async def test_that_are_none_are_told_why(self, content: bytes, why: str) -> None:
        assert why in await asked_back("SELECT * FROM data", content)

    async def test_may_be_text(self, talk: Talk) -> None:
        answer = await talk.say("SELECT count(*) FROM data", text(CITIES.decode()))
        assert answer.artifacts["rows"][0].data["rows"] == [[3]]

    async def test_may_begin_as_a_question_does(self, talk: Talk) -> None:
        answer = await talk.say("SELECT * FROM data", text("with,b\n1,2", media_type="text/csv"))
        assert answer.artifacts["rows"][0].data["rows"] == [[1, 2]]

    async def test_on_the_web_that_cannot_be_had_fail_the_task(self) -> None:
        part = link("https://example.com/x.csv", media_type="text/csv")
        answer = await Talk(TablesAgent).say("SELECT 1", part)
        assert answer.state is TaskState.FAILED
        assert "cannot be fetched" in answer.text


class TestAskingBack:
    async def test_for_a_file_then_for_a_question(self, talk: Talk) -> None:
        answer = await talk.say("hello")
        assert "no CSV file yet" in answer.text
        answer = await talk.say(csv_part())
        assert "The columns of `data` are name, country, population" in answer.text
        answer = await talk.say("SELECT count(*) FROM data")
        assert answer.artifacts["rows"][0].data["rows"] == [[3]]

    async def test_for_a_file_to_a_question_that_is_there(self, talk: Talk) -> None:
        answer = await talk.say("SELECT count(*) FROM data")
        answer = await talk.say(csv_part())
        assert answer.artifacts["rows"][0].data["rows"] == [[3]]

    async def test_for_a_better_question(self, talk: Talk) -> None:
        answer = await talk.say("SELECT nme FROM data", csv_part())
        assert "no such column: nme" in answer.text
        answer = await talk.say("SELECT name FROM data LIMIT 1")
        assert answer.artifacts["rows"][0].data["rows"] == [["Madrid"]]


class TestLimits:
    @rows(
        "sql, why",
        [
            ("WITH t AS (SELECT 1) DELETE FROM data", "not authorized"),
            ("SELECT * FROM data; DROP TABLE data", "one statement at a time"),
            ("SELECT * FROM pragma_database_list", "not authorized"),
            ("SELECT load_extension('x')", "not authorized"),
            ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", "not authorized"),
            ("SELECT zeroblob(10001)", "too big"),
            ("SELECT 1 FROM data WHERE name LIKE printf('%.*c', 101, '%')", "pattern too complex"),
            ("SELECT 9e999", "blob or infinite"),
            ("SELECT x'00'", "blob or infinite"),
        ],
    )  # fmt: skip
    async def test_questions_only_read(self, sql: str, why: str) -> None:
        assert why in await asked_back(sql)

    async def test_a_question_takes_no_longer_than_it_may(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(agents, "MAX_SECONDS", 0.05)
        assert "interrupted" in await asked_back(ENDLESS, b"a\n" + b"1\n" * 10_000)

    async def test_a_question_ends_with_its_task(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(agents, "MAX_SECONDS", 3600)
        monkeypatch.setattr(Turn, "cancelled", True)
        assert "interrupted" in await asked_back(ENDLESS, b"a\n" + b"1\n" * 10_000)

    @rows("columns, count", [("1", 200), ("printf('%.*c', 9000, 'x')", 11)])
    async def test_an_answer_has_an_end_and_says_so(
        self, talk: Talk, columns: str, count: int
    ) -> None:
        answer = await talk.say(f"SELECT {columns} FROM data", csv_part(b"a\n" + b"1\n" * 300))  # noqa: S608 - ours
        found = answer.artifacts["rows"][0].data
        assert (len(found["rows"]), found["more"]) == (count, True)
        assert str(answer.artifacts["table"][0].text).endswith(f"({count} rows, and more)")
