"""Other apps show something on the page of a task, and this one knows nothing of them."""

from __future__ import annotations

import pytest
from django.http import HttpRequest
from django.test import RequestFactory

from a2a_tasks.admin import beside
from a2a_tasks.admin.beside import Section


def says_hello(request: HttpRequest, task: int) -> Section | None:
    """Shows something of the first task only."""
    return Section(template="hello.html", content="hello") if task == 1 else None


class TestBeside:
    def test_shows_what_others_have_to_show_of_a_task(
        self, monkeypatch: pytest.MonkeyPatch, rf: RequestFactory
    ) -> None:
        monkeypatch.setattr(beside, "_shows", [])
        beside.show(says_hello)
        beside.show(says_hello)
        assert [section.content for section in beside.of(rf.get("/"), 1)] == ["hello"]
        assert beside.of(rf.get("/"), 2) == []
