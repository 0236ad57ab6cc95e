"""Who was not let in: the first of a kind at once, the next as a number, and never more than can be written."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser
from pytest_django import Settings

from a2a_tasks.access import auth_failures, authentication
from a2a_tasks.access.api_keys import issue
from a2a_tasks.access.auth_failures import MAX_COUNT, REST, Denial, Throttle
from a2a_tasks.access.authentication import Credentials, identify
from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry
from a2a_tasks.protocol.errors import Forbidden, Unauthenticated
from a2a_tasks.store import db as store
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.test_api_keys import made
from tests.support.agents_under_test import playing

WRONG = Denial(Action.ACCESS_REFUSED, "10.1.2.3", "an unknown API key")


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TestThrottle:
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def written(self) -> list[tuple[Denial, int]]:
        return []

    @pytest.fixture
    def throttle(self, clock: Clock, written: list[tuple[Denial, int]]) -> Throttle:
        return Throttle(lambda denial, count: written.append((denial, count)), clock)

    def test_the_first_is_written_at_once_and_the_next_are_counted(
        self, throttle: Throttle, clock: Clock, written: list[tuple[Denial, int]]
    ) -> None:
        assert [throttle.tell(WRONG) for _ in range(5)] == [True, False, False, False, False]
        assert written == [(WRONG, 1)]
        clock.now = REST
        throttle.flush()
        throttle.flush()
        assert written == [(WRONG, 1), (WRONG, 4)]

    def test_after_a_rest_it_is_written_with_what_was_counted(
        self, throttle: Throttle, clock: Clock, written: list[tuple[Denial, int]]
    ) -> None:
        throttle.tell(WRONG)
        throttle.tell(WRONG)
        clock.now = REST
        throttle.tell(WRONG)
        assert written == [(WRONG, 1), (WRONG, 2)]

    def test_different_ones_are_told_apart(
        self, throttle: Throttle, written: list[tuple[Denial, int]]
    ) -> None:
        others = [
            WRONG._replace(address="x"),
            WRONG._replace(why="x"),
            WRONG._replace(agent="x"),
            WRONG._replace(actor="x"),
        ]
        assert all(throttle.tell(other) for other in (WRONG, *others))
        assert len(written) == 5

    def test_many_addresses_fill_neither_memory_nor_log(
        self, throttle: Throttle, clock: Clock, written: list[tuple[Denial, int]]
    ) -> None:
        for n in range(10 * MAX_COUNT):
            throttle.tell(WRONG._replace(address=f"10.{n}"))
        assert len(written) <= MAX_COUNT + 1
        throttle.flush()
        assert sum(count for _, count in written) == 10 * MAX_COUNT
        assert written[-1][0].address == "others"
        clock.now = 3 * REST
        throttle.flush()
        assert throttle.tell(WRONG)  # who is quiet is forgotten
        assert written[-1][0] == WRONG

    def test_what_was_counted_is_written_after_a_rest_by_itself(
        self, monkeypatch: pytest.MonkeyPatch, clock: Clock
    ) -> None:
        counts: queue.Queue[int] = queue.Queue()
        throttle = Throttle(lambda _, count: counts.put(count), clock)
        monkeypatch.setattr(auth_failures, "_throttle", throttle)
        monkeypatch.setattr(auth_failures, "_timer", None)
        monkeypatch.setattr(auth_failures, "REST", 0.01)
        for _ in range(4):
            auth_failures.record_failed_sign_in("10.1.2.3", "alice")
        told = [counts.get(timeout=30)]
        while sum(told) < 4:  # on a busy machine some come after the rest
            told.append(counts.get(timeout=30))
        assert (told[0], sum(told)) == (1, 4)

    def test_no_other_test_is_so_long_that_a_timer_writes_in_it(self) -> None:
        for _ in range(2):
            auth_failures.record_failed_sign_in("10.1.2.3", "alice")
        timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
        assert [each for each in timers if each.function is auth_failures._flush_late] == []


def entries(action: Action) -> list[tuple[str, str, dict[str, Any]]]:
    """Actor, object and detail of what was written."""
    rows = AuditEntry.objects.filter(action=action.value).order_by("pk")
    assert set(rows.values_list("outcome", flat=True)) <= {"refused"}
    return [(row.actor, row.object, json.loads(row.detail)) for row in rows]


async def written(action: Action) -> list[tuple[str, str, dict[str, Any]]]:
    """The same, once all is."""
    auth_failures.flush()
    await asyncio.to_thread(store.close)  # what is under way comes to its end
    return await run_in_thread(entries, action)


@pytest.fixture
def anew(empty_audit_log: None) -> None:
    authentication.forget()


@pytest.mark.django_db
@pytest.mark.usefixtures("anew")
class TestCallers:
    @pytest.fixture(autouse=True)
    async def quiet(self, settings: Settings) -> AsyncIterator[None]:
        settings.A2A_ANONYMOUS = "0"
        settings.A2A_BASIC = True
        yield
        store.close()  # one thread on SQLite: what was under way is written

    async def test_who_shows_nothing(self) -> None:
        with pytest.raises(Unauthenticated):
            await identify(Credentials({}, address="10.1.2.3"))
        (found,) = await written(Action.ACCESS_REFUSED)
        assert found == ("", "", {"address": "10.1.2.3", "why": "no credentials", "count": 1})

    async def test_who_shows_what_is_wrong_also_when_it_is_remembered(self) -> None:
        issued = await made()
        shown = Credentials({"x-api-key": issued.key[:-5] + "wrong"}, address="10.1.2.3")
        for _ in range(3):
            with pytest.raises(Unauthenticated):
                await identify(shown)
        found = await written(Action.ACCESS_REFUSED)
        assert sorted(detail["count"] for *_, detail in found) == [1, 2]
        assert {detail["why"] for *_, detail in found} == {"an API key with a wrong secret"}
        assert {whose for _, whose, _ in found} == {f"key:{issued.row.prefix}"}

    async def test_who_is_known_and_may_not(self) -> None:
        issued = await made(tenant="acme")
        with playing(lambda turn: None, scopes=["pay"]) as agent, pytest.raises(Forbidden):
            await identify(Credentials({"x-api-key": issued.key}, address="10.1.2.3"), agent)
        entries = await written(Action.ACCESS_DENIED)  # also what tests before have counted
        ((_, _, detail),) = [one for one in entries if one[0] == f"key:{issued.row.prefix}"]
        assert detail == {"address": "10.1.2.3", "why": "lacks the scope pay", "count": 1}

    async def test_no_database_costs_no_request(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def away(*_: object, **__: object) -> None:
            raise RuntimeError("no table")

        monkeypatch.setattr("a2a_tasks.store.audit.note", away)
        with caplog.at_level(logging.WARNING), pytest.raises(Unauthenticated):
            await identify(Credentials({}))
        await asyncio.to_thread(store.close)
        assert "no table" in caplog.text


@pytest.mark.django_db
@pytest.mark.usefixtures("anew")
class TestThePages:
    @pytest.fixture
    def browser(self) -> Browser:
        return Browser()

    def done(self, action: Action) -> list[tuple[str, str, dict[str, Any]]]:
        auth_failures.flush()
        store.close()
        return entries(action)

    def test_a_sign_in_that_fails_names_only_users_there_are(self, browser: Browser) -> None:
        bob = User.objects.create_user("bob", password="right")
        for name in ("bob", "canary-typed-into-the-wrong-field"):
            browser.post("/admin/login/", {"username": name, "password": "canary-wrong"})
        found = self.done(Action.LOGIN_FAILED)
        assert sorted(name for _, name, _ in found) == ["", f"user:{bob.pk}"]
        assert "canary" not in str(found)

    def test_signing_in_and_out(self, browser: Browser) -> None:
        bob = User.objects.create_superuser("bob", password="right")
        browser.post("/admin/login/", {"username": "bob", "password": "right"})
        browser.post("/admin/logout/")
        rows = AuditEntry.objects.filter(action__startswith="login.").order_by("pk")
        assert list(rows.values_list("actor", "action", "object")) == [
            (f"staff:{bob.pk}", "login.done", f"user:{bob.pk}"),
            (f"staff:{bob.pk}", "login.ended", f"user:{bob.pk}"),
        ]
        changed = AuditEntry.objects.filter(action="user.change")
        assert not changed.exists()  # the sign-in is the entry

    def test_a_page_somebody_may_not_see(self, browser: Browser) -> None:
        bob = User.objects.create_user("bob", is_staff=True)
        browser.force_login(bob)
        issued = issue("robot")
        answer = browser.get(f"/admin/a2a_tasks/apikey/{issued.row.pk}/change/?canary=1")
        assert answer.status_code == 403
        ((actor, _, detail),) = self.done(Action.ACCESS_DENIED)
        assert actor == f"staff:{bob.pk}"
        assert detail["why"] == f"page /admin/a2a_tasks/apikey/{issued.row.pk}/change/"
