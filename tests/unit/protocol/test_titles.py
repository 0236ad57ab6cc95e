"""What lists show of a message: the beginning of its text, as any database holds it."""

from __future__ import annotations

import pytest

from a2a_tasks.protocol.titles import MAX_TITLE, title_of
from a2a_tasks.protocol.values import Part


@pytest.mark.parametrize(
    ("texts", "opening"),
    [
        (["hello"], "hello"),
        (["one\n two", "three"], "one two three"),
        ([], ""),
        (["a\x00b"], "a b"),
        (["half \ud800"], "half ?"),
        (["x" * 1000], "x" * MAX_TITLE),
        ([" " * 10_000 + "late"], ""),
    ],
    ids=range(7),
)
def test_is_one_line_of_its_texts(texts: list[str], opening: str) -> None:
    parts = (Part(data={"text": "no"}), *(Part(text=text) for text in texts))
    assert title_of(parts) == opening
