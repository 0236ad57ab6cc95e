"""Webhooks and receivers: looked at without their secrets, switched off and on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_console.api.views import describe_api
from a2a_push.models import PushConfig, Receiver
from tests.support.console.admin.rows import make_task
from tests.support.console.api.rights import BODIES
from tests.support.console.api.world import asked, key_of, person, populated
from tests.support.push.rows import SECRETS, make_config, make_receiver

pytestmark = pytest.mark.django_db

VIEW = ("a2a_push.view_pushconfig", "a2a_push.view_receiver")
CONFIGS, RECEIVERS = "/webhooks/configs", "/webhooks/receivers"


class TestConfigs:
    def test_are_found_by_what_is_asked(self) -> None:
        one, two = make_task("one"), make_task("two", agent="tables")
        make_config(one, "active")
        make_config(one, "settled", active=False)
        off = make_config(
            two, "off", disabled_reason="gone", receiver=make_receiver("https://b.example.com/")
        )
        bob = person(*VIEW)

        def ids(query: str) -> list[str]:
            return [config["id"] for config in asked(bob, f"{CONFIGS}?{query}").json["items"]]

        assert ids("") == ["off", "settled", "active"]
        assert [ids(f"state={state}") for state in ("active", "settled", "disabled")] == [
            ["active"],
            ["settled"],
            ["off"],
        ]
        assert ids(f"task_key={one.pk}") == ["settled", "active"]
        assert ids("agent=tables") == ids(f"receiver_key={off.receiver_id}") == ["off"]

    def test_are_shown_without_what_is_secret(self) -> None:
        world = populated()
        shown = asked(person(*VIEW), f"{CONFIGS}/{world.config.pk}").json
        assert shown["url"] == "https://hooks.example.com/one?key=…"
        assert (shown["state"], shown["disabled_reason"]) == ("disabled", "gone")
        assert (shown["schemes"], shown["has_secrets"]) == (["Bearer", "Basic"], True)

    @pytest.mark.django_db
    def test_are_enabled_once(self) -> None:
        world = populated()
        url, key = f"{CONFIGS}/{world.config.pk}/enable", key_of("admin:write")
        assert asked(key, url, post=True).json["state"] == "active"
        assert asked(key, url, post=True).code == "conflict"


class TestReceivers:
    def test_are_found_by_how_they_stand(self) -> None:
        now = timezone.now()
        make_receiver("https://well.example.com/", well=True)
        make_receiver("https://off.example.com/", disabled_at=now, disabled_reason="mine")
        make_receiver(
            "https://open.example.com/",
            probe_at=now + timedelta(hours=1),
            breaker='{"phase":"open","until":9999999999,"reason":"answered 500"}',
        )
        make_receiver("https://paused.example.com/", paused_until=now + timedelta(hours=1))
        make_receiver("https://failing.example.com/", last_failure_at=now)
        bob = person(*VIEW)

        def names(query: str) -> list[str]:
            items = asked(bob, f"{RECEIVERS}?{query}").json["items"]
            return [item["address"].split(".")[0].removeprefix("https://") for item in items]

        assert names("") == ["failing", "paused", "open", "off", "well"]
        for word, found in (("disabled", "off"), ("open", "open"), ("paused", "paused")):
            assert names(f"health={word}") == [found]
        assert names("health=failing") == ["failing"]
        assert names("address=paused.example") == ["paused"]
        lines = {line["health"]: line for line in asked(bob, RECEIVERS).json["items"]}
        assert lines["disabled"]["why"] == "mine"
        assert lines["open"]["why"] == "answered 500"
        assert lines["paused"]["until"] is not None

    def test_are_shown_with_what_there_is_for_them(self) -> None:
        world = populated()
        bob = person(*VIEW)
        with CaptureQueriesContext(connection) as queries:
            shown = asked(bob, f"{RECEIVERS}/{world.receiver.pk}").json
        assert (shown["pending"], shown["dead"]) == (1, 1)
        assert len(queries) <= 8

    @pytest.mark.django_db
    def test_are_switched_off_with_a_reason_and_on_again(self) -> None:
        world = populated()
        url, key = f"{RECEIVERS}/{world.receiver.pk}", key_of("admin:write")
        off = asked(key, f"{url}/disable", {"reason": "  too\n loud "})
        assert (off.json["health"], off.json["why"]) == ("disabled", "too loud")
        assert asked(key, f"{url}/disable", {"reason": "x"}).code == "conflict"
        assert asked(key, f"{url}/enable", post=True).json["health"] == "closed"
        assert asked(key, f"{url}/enable", post=True).code == "conflict"
        assert Receiver.objects.get().disabled_at is None

    @pytest.mark.django_db
    @pytest.mark.parametrize("said", [{}, {"reason": ""}, {"reason": "x" * 201}], ids=str)
    def test_are_not_switched_off_without_a_reason(self, said: dict[str, str]) -> None:
        world = populated()
        answer = asked(key_of("admin:write"), f"{RECEIVERS}/{world.receiver.pk}/disable", said)
        assert answer.json["errors"][0]["name"] == "reason"


@pytest.mark.django_db
def test_no_answer_of_any_route_has_a_secret() -> None:
    world = populated()
    secret = world.config.secret
    key = key_of("admin:read", "admin:write", "admin:keys")
    digests = [world.key.digest]
    asks = 0
    for path, methods in describe_api()["paths"].items():
        for method, about in methods.items():
            body = BODIES.get(about["operationId"])
            answer = asked(key, world.at(path), body, post=method == "post")
            told = answer.body.decode()
            hidden = [*SECRETS, secret, *digests]
            assert [text for text in hidden if text in told] == [], path
            asks += 1
    assert asks == sum(map(len, describe_api()["paths"].values())) > 30
    assert PushConfig.objects.get().secret == secret
