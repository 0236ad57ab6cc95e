"""Nothing that was written down is lost, and what was not wholly written is nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from lab.faultlab.history import History, read

pytestmark = pytest.mark.backend("sqlite")


def test_what_was_appended_is_read_with_its_moment(tmp_path: Path) -> None:
    before = time.time()
    History(tmp_path / "h").append("sent", key="k1", agent="é")
    (record,) = read(tmp_path / "h")
    assert (record.what, record["key"], record["agent"]) == ("sent", "k1", "é")
    assert before <= record.t <= time.time()
    assert record.get("status") is None


def test_a_file_that_was_never_begun_has_no_records(tmp_path: Path) -> None:
    assert read(tmp_path / "nothing") == []


@pytest.mark.parametrize("torn", ['{"t": 2', '{"t": 2, "what": "se', '{"t": 2}', "\x00\x00"])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "h"
    path.write_text('{"t": 1, "what": "sent"}\n' + torn)
    assert [record.t for record in read(path)] == [1.0]


def test_a_last_line_that_lacks_only_its_break_counts(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text('{"t": 1, "what": "sent"}\n{"t": 2, "what": "accepted"}')
    assert [record.what for record in read(path)] == ["sent", "accepted"]


@pytest.mark.parametrize("line", ["", "{", "[]", '{"what": "sent"}', '{"t": 1}'])
def test_a_line_in_the_middle_that_is_no_record_is_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "h"
    path.write_text(line + '\n{"t": 2, "what": "sent"}\n')
    with pytest.raises(ValueError, match="line 1 of h"):
        read(path)


def test_threads_and_writers_do_not_mix_their_lines(tmp_path: Path) -> None:
    writers = [History(tmp_path / "h"), History(tmp_path / "h")]

    def write(name: int) -> None:
        for number in range(200):
            writers[name % 2].append("frame", by=name, number=number, body="x" * 500)

    threads = [threading.Thread(target=write, args=[name]) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [(record["by"], record["number"]) for record in read(tmp_path / "h")]
    for name in range(4):
        assert [number for by, number in found if by == name] == list(range(200))


async def test_tasks_of_a_loop_write_too(tmp_path: Path) -> None:
    history = History(tmp_path / "h")

    async def write(number: int) -> None:
        await asyncio.to_thread(history.append, "sent", number=number)
        history.append("accepted", number=number)

    await asyncio.gather(*map(write, range(50)))
    records = read(tmp_path / "h")
    assert len(records) == 100
    assert [r.t for r in records] == sorted(r.t for r in records)
    history.close()
