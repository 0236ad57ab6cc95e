"""What goes wrong is told in one shape, names what is wrong, and says nothing of the inside."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, ProgrammingError, connection
from django.test import Client

from tests.support.console.admin.rows import make_task
from tests.support.console.api.world import API, asked, key_of, person
from tests.support.rows import rows

pytestmark = pytest.mark.django_db

VIEW = ("a2a_tasks.view_task",)


@pytest.fixture
def viewer() -> Client:
    return person(*VIEW)


def raising(fault: Exception) -> Any:
    """What the database answers from now on, for as long as the block lasts."""

    def refuse(*_: Any) -> NoReturn:
        raise fault

    return connection.execute_wrapper(refuse)


class TestAQuery:
    @rows(
        ("query", "name"),
        [
            ("stat=failed", "stat"),
            ("state=failing", "state.0"),
            ("state=", "state.0"),
            ("size=0", "size"),
            ("size=201", "size"),
            ("size=many", "size"),
            ("size=1&size=2", "size"),
            ("agent=", "agent"),
            ("agent=" + "a" * 65, "agent"),
            ("agent=a%00b", "agent"),
            ("owner=a%00b", "owner"),
            ("dialect=klingon", "dialect"),
            ("created_after=yesterday", "created_after"),
            ("created_before=0001-01-01T00:00:00Z", "created_before"),
            ("created_before=9999-12-31T23:59:59-23:59", "created_before"),
            ("updated_after=1969-12-31T23:59:59Z", "updated_after"),
            ("format=html", "format"),
            ("a" * 500 + "=1", "a" * 100),
        ],
        ids=lambda text: text[:40],
    )
    def test_that_is_wrong_is_told_which_parameter_is(
        self, viewer: Client, query: str, name: str
    ) -> None:
        answer = asked(viewer, f"/tasks?{query}")
        assert (answer.status, answer.code) == (400, "invalid")
        (mistake,) = answer.json["errors"]
        assert (mistake["where"], mistake["name"]) == ("query", name)
        assert mistake["detail"]

    def test_may_name_several_mistakes(self) -> None:
        answer = asked(person(*VIEW), "/tasks?size=0&dialect=x")
        assert {mistake["name"] for mistake in answer.json["errors"]} == {"size", "dialect"}

    def test_is_refused_where_none_is_taken(self) -> None:
        task = make_task("task-1")
        answer = asked(person(*VIEW), f"/tasks/{task.pk}?size=1")
        assert answer.json["errors"][0]["name"] == "size"


class TestABody:
    @pytest.fixture(autouse=True)
    def maker(self) -> None:
        """Somebody who may make keys."""
        self.client = person("a2a_tasks.add_apikey")

    def posted(self, text: bytes | str, kind: str = "application/json") -> Any:
        return self.client.post(f"{API}/keys", text, content_type=kind)

    @rows(
        ("text", "name"),
        [
            ("{", ""),
            ("[]", ""),
            ('"x"', ""),
            ("NaN", ""),
            ('{"name":"a","name":"b"}', ""),
            ('{"name":"\\ud800"}', ""),
            ("[" * 100 + "]" * 100, ""),
            (b"\xff", ""),
            ("", "name"),
            ("{}", "name"),
            ('{"name":""}', "name"),
            ('{"name":"\\u0000"}', "name"),
            ('{"name":["x"]}', "name"),
            ('{"name":"x","scopes":"read"}', "scopes"),
            ('{"name":"x","scopes":["a b"]}', "scopes.0"),
            ('{"name":"x","scopes":[{}]}', "scopes.0"),
            ('{"name":"x","tenant":"a/b"}', "tenant"),
            ('{"name":"x","expires_at":"2020-01-01T00:00:00Z"}', "expires_at"),
            ('{"name":"x","expires_at":7}', "expires_at"),
            ('{"name":"x","digest":"0"}', "digest"),
        ],
        ids=lambda text: str(text)[:40],
    )
    def test_that_is_wrong_is_told_where(self, text: str | bytes, name: str) -> None:
        answer = self.posted(text)
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
        (mistake,) = answer.json()["errors"]
        assert (mistake["where"], mistake["name"]) == ("body", name)
        assert "line 1" not in answer.text  # what Python's parser would say

    def test_is_refused_where_none_is_taken(self) -> None:
        task = make_task("task-1")
        operator = person("a2a_tasks.change_task", name="operator")
        answer = asked(operator, f"/tasks/{task.pk}/cancel", {"force": True})
        assert answer.json["errors"][0]["name"] == "force"

    @rows("kind", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"])
    def test_of_another_type_is_refused(self, kind: str) -> None:
        answer = self.posted('{"name":"x"}', kind)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")

    def test_that_is_too_large_is_refused(self) -> None:
        answer = self.posted('{"name":"' + "x" * 300_000 + '"}')
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


class TestARoute:
    @rows("verb", ["put", "patch", "delete", "post", "options", "trace"])
    def test_answers_other_verbs_alike(self, viewer: Client, verb: str) -> None:
        answer = getattr(viewer, verb)(f"{API}/tasks")
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer.headers["allow"] == "GET, HEAD"

    def test_answers_head_without_a_body(self) -> None:
        answer = person(*VIEW).head(f"{API}/tasks")
        assert (answer.status_code, answer.content) == (200, b"")

    @rows("path", ["/tasks/", "/tasks/x", "/nothing", "/tasks/1/x", "/v2/x"])
    def test_that_is_not_there_is_told_to_who_was_let_in(self, viewer: Client, path: str) -> None:
        assert asked(None, path).code == "unauthenticated"
        assert asked(viewer, path).code == "not_found"

    @rows("accept", ["text/html", "image/png", "nonsense"])
    def test_answers_json_whatever_is_accepted(self, viewer: Client, accept: str) -> None:
        answer = viewer.get(f"{API}/tasks", headers={"Accept": accept})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"


class TestAFault:
    def test_of_the_database_is_503_and_when_to_come_again(self) -> None:
        bob = person(*VIEW)
        with raising(OperationalError("the server at 10.0.0.7 is away")):
            answer = asked(bob, "/tasks")
        assert (answer.status, answer.code) == (503, "unavailable")
        assert answer.headers["retry-after"] == "5"
        assert b"10.0.0.7" not in answer.body

    def test_of_ours_is_500_without_a_word_of_the_inside(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(*_: Any, **__: Any) -> NoReturn:
            raise ProgrammingError("no such table: secrets")

        monkeypatch.setattr("a2a_console.api.tasks.add_openings", broken)
        answer = asked(person(*VIEW), "/tasks")
        assert (answer.status, answer.code) == (500, "internal")
        assert b"table" not in answer.body
        assert "no such table: secrets" in caplog.text  # the log has it


class TestASession:
    def test_changes_nothing_without_its_csrf_token(self) -> None:
        task = make_task("task-1")
        person("a2a_tasks.change_task")
        client = Client(enforce_csrf_checks=True)
        client.force_login(User.objects.get())
        refused = asked(client, f"/tasks/{task.pk}/cancel", post=True)
        assert (refused.status, refused.code) == (403, "csrf")
        task.refresh_from_db()
        assert task.state == "TASK_STATE_SUBMITTED"

    @pytest.mark.django_db
    def test_changes_with_it(self) -> None:
        task = make_task("task-1")
        person("a2a_tasks.change_task")
        client = Client(enforce_csrf_checks=True)
        client.force_login(User.objects.get())
        page = client.get(f"{API}/docs/").text
        token = page.partition('data-csrf="')[2].partition('"')[0]
        url, kind = f"{API}/tasks/{task.pk}/cancel", "application/json"
        answer = client.post(url, "", content_type=kind, headers={"X-CSRFToken": token})
        assert answer.status_code == 200, answer.content

    @pytest.mark.django_db
    def test_does_not_count_beside_credentials(self) -> None:
        bob = person(*VIEW)
        with_key = bob.get(f"{API}/tasks", headers={"X-API-Key": key_of()})
        assert with_key.json()["code"] == "missing_scope"
        wrong = bob.get(f"{API}/tasks", headers={"X-API-Key": "x"})
        assert wrong.json()["code"] == "unauthenticated"
