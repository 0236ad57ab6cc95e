"""Who guesses at a password has to wait: by name and address, in the admin and by HTTP Basic, in every process."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client as Browser
from django.test import RequestFactory

from a2a_project.asgi import application
from a2a_project.trusted_proxies import behind_proxies
from a2a_tasks import pubsub
from a2a_tasks.access import authentication, lockout, rate_limits, sign_in_forms, token_buckets
from a2a_tasks.access.authentication import Credentials, identify
from a2a_tasks.bindings.http import Receive, Scope, Send
from a2a_tasks.protocol.errors import RateLimited, WrongCredentials
from a2a_tasks.rates import Rate
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.test_users_and_certificates import PASSWORD, basic
from tests.support.bindings.client import Client

pytestmark = pytest.mark.django_db

HERE, ELSEWHERE = "203.0.113.7", "198.51.100.9"
LOGIN = "/admin/login/"


@pytest.fixture(autouse=True)
def three(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and passwords are taken; the fourth is one too many. Nobody has tried yet, also as far as Redis knows."""
    host = uuid.uuid4().hex
    monkeypatch.setattr(pubsub, "prefix", lambda: host)
    settings.A2A_BASIC = True
    settings.A2A_LOGIN_FAILURES = 3
    User.objects.create_superuser("root", password=PASSWORD)


def sign_in(password: str = PASSWORD, address: str = HERE, name: str = "root") -> HttpResponse:
    said = {"username": name, "password": password, "next": "/admin/"}
    answer: Any = Browser(REMOTE_ADDR=address).post(LOGIN, said)
    return answer  # type: ignore[no-any-return]


async def call(password: str = PASSWORD, address: str = HERE, name: str = "root") -> str:
    """Show name and password as a caller does; whoever that is."""
    authentication.forget()  # as if some seconds had passed, or in another process
    return (await identify(Credentials(basic(name, password), address, address))).principal


async def wrong(address: str = HERE, name: str = "root", times: int = 3) -> None:
    for number in range(times):
        with pytest.raises(WrongCredentials):
            await call(f"guess {number}", address, name)


class TestInTheAdmin:
    def test_the_right_password_opens_no_more_after_too_many_wrong_ones(self) -> None:
        assert [sign_in(f"guess {n}").status_code for n in range(3)] == [200, 200, 429]
        answer = sign_in()
        assert answer.status_code == 429
        assert b"Too many sign-in attempts" in answer.content
        assert "content-security-policy" in answer.headers

    def test_nobody_is_kept_out_from_elsewhere_nor_are_others_from_here(self) -> None:
        User.objects.create_superuser("ruth", password=PASSWORD)
        for n in range(4):
            sign_in(f"guess {n}")
        assert sign_in(address=ELSEWHERE).status_code == 302
        assert sign_in(name="ruth").status_code == 302

    def test_a_right_password_begins_the_count_anew(self) -> None:
        for _ in range(2):
            assert [sign_in(f"guess {n}").status_code for n in range(2)] == [200, 200]
            assert sign_in().status_code == 302

    def test_it_is_over_after_a_while(self) -> None:
        for n in range(3):
            sign_in(f"guess {n}")
        attempt = AccessAttempt.objects.get()
        attempt.attempt_time -= timedelta(minutes=14)
        attempt.save()
        assert sign_in().status_code == 429
        attempt.attempt_time -= timedelta(minutes=1)
        attempt.save()
        assert sign_in().status_code == 302

    def test_an_operator_ends_it_on_a_page(self) -> None:
        for n in range(3):
            sign_in(f"guess {n}")
        operator = Browser()
        operator.force_login(User.objects.create_superuser("ruth"))
        rows = "/admin/axes/accessattempt/"
        assert b"root" in operator.get(rows).content
        picked = {"action": "delete_selected", "_selected_action": [AccessAttempt.objects.get().pk]}
        assert operator.post(rows, {**picked, "post": "yes"}).status_code == 302
        assert sign_in().status_code == 302

    def test_an_operator_ends_it_by_a_command(self) -> None:
        for n in range(3):
            sign_in(f"guess {n}")
        call_command("axes_reset_username", "root")
        assert sign_in().status_code == 302

    def test_nothing_that_was_guessed_is_kept(self) -> None:
        sign_in("canary-7f3a")
        assert "canary-7f3a" not in str(AccessAttempt.objects.values().get())


class TestAnAddress:
    @pytest.fixture(autouse=True)
    def twice(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """It may be wrong twice."""
        settings.A2A_RATE_WRONG_CREDENTIALS = "1/h burst 2"
        monkeypatch.setattr(token_buckets, "PATIENCE_SECONDS", 30.0)

    def test_that_was_wrong_too_often_waits_whatever_the_name(self) -> None:
        answers = [sign_in("guess", name=f"nobody-{n}") for n in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert int(answers[2]["Retry-After"]) > 0
        assert b"Too many sign-in attempts" in answers[2].content
        assert sign_in().status_code == 429
        assert AccessAttempt.objects.count() == 2  # what is refused is neither hashed nor kept
        assert sign_in(address=ELSEWHERE).status_code == 302

    def test_looks_at_the_form_and_leaves_again_without_being_counted(self) -> None:
        browser = Browser(REMOTE_ADDR=HERE)
        assert {browser.get(LOGIN).status_code for _ in range(5)} == {200}
        assert sign_in().status_code == 302

    def test_is_counted_once_by_http_basic_and_together_with_the_form(self) -> None:
        async_to_sync(wrong)(name="nobody", times=1)
        assert [sign_in("guess").status_code for _ in range(2)] == [200, 429]
        with pytest.raises(RateLimited):
            async_to_sync(call)()


class TestManyForms:
    """Of one address, at a host where thousands of passwords may be wrong."""

    @pytest.fixture(autouse=True)
    def two(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two may be sent at once."""
        settings.A2A_RATE_WRONG_CREDENTIALS = "5/s burst 100"
        monkeypatch.setattr(rate_limits, "FORMS", Rate(interval=3_600_000_000, burst=2))
        monkeypatch.setattr(token_buckets, "PATIENCE_SECONDS", 30.0)

    def test_are_refused_whatever_the_name_and_the_password(self) -> None:
        assert sign_in("guess", name="nobody").status_code == 200
        assert sign_in().status_code == 302
        assert sign_in().status_code == 429
        assert sign_in(address=ELSEWHERE).status_code == 302

    async def test_that_come_at_once_are_counted_before_any_turns_out_to_be_wrong(self) -> None:
        tries = (rate_limits.may_sign_in(HERE) for _ in range(60))
        found = await asyncio.gather(*tries, return_exceptions=True)
        assert found.count(None) == 2
        assert {type(one) for one in found} == {type(None), RateLimited}

    def test_are_not_counted_where_wrong_credentials_are_not(self, settings: Any) -> None:
        settings.A2A_RATE_WRONG_CREDENTIALS = ""
        assert {sign_in("guess", name=f"nobody-{n}").status_code for n in range(3)} == {200}


def test_no_more_attempts_are_kept_than_a_number_and_the_newest_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_in_forms, "MAX_COUNT", 3)
    for n in range(5):
        sign_in("guess", name=f"nobody-{n}")
    kept = AccessAttempt.objects.order_by("pk").values_list("username", flat=True)
    assert list(kept) == ["nobody-2", "nobody-3", "nobody-4"]


class TestByHttpBasic:
    async def test_the_right_password_opens_no_more_after_too_many_wrong_ones(self) -> None:
        await wrong()
        with pytest.raises(WrongCredentials):
            await call()

    async def test_what_is_refused_here_is_not_taken_for_wrong_elsewhere(self) -> None:
        await wrong()
        with pytest.raises(WrongCredentials):
            await call()  # from here on, without forgetting
        await identify(Credentials(basic("root"), ELSEWHERE, ELSEWHERE))

    def test_the_admin_and_basic_count_together(self) -> None:
        async_to_sync(wrong)(times=2)
        assert sign_in("guess").status_code == 429
        with pytest.raises(WrongCredentials):
            async_to_sync(call)()

    async def test_the_address_is_that_of_whom_a_trusted_proxy_speaks_for(self) -> None:
        async def from_the_proxy(scope: Scope, receive: Receive, send: Send) -> None:
            behind = behind_proxies(application, ["127.0.0.1"])
            await behind({**scope, "client": ("127.0.0.1", 4000)}, receive, send)

        client = Client(from_the_proxy)
        listed = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
        for n, status in enumerate([401, 401, 401, 401]):
            authentication.forget()
            password = PASSWORD if n == 3 else f"guess {n}"
            headers = {**basic("root", password), "x-forwarded-for": HERE, "a2a-version": "1.0"}
            answer = await client.post("/agents/demo/", listed, headers)
            assert answer.status == status
        headers = {**basic("root"), "x-forwarded-for": ELSEWHERE, "a2a-version": "1.0"}
        assert (await client.post("/agents/demo/", listed, headers)).status == 200

    async def test_a_name_that_no_user_can_have_is_not_even_counted(self) -> None:
        await wrong(name="a" * 151)
        assert not await run_in_thread(AccessAttempt.objects.exists)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("", None),
        ("unix:", None),
    ],
)
def test_an_address_is_a_subscriber(said: str, found: str | None) -> None:
    assert lockout.address(RequestFactory().get("/", REMOTE_ADDR=said)) == found
