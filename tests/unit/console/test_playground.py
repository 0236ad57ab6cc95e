"""The playground's part of the host: whether it is there, and the webhook of a page."""

from __future__ import annotations

import pickle
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import caches
from django.test import Client

from a2a_console import playground

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

HERE = {"host": "localhost:8000"}


@pytest.fixture(autouse=True)
def on(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.A2A_PLAYGROUND = "1"
    # A cache that nobody has used. (To clear it would empty Redis, also of what says that it is this run's.)
    monkeypatch.setattr(caches[playground.CACHE], "key_prefix", uuid.uuid4().hex)


def opened() -> str:
    return str(Client().get("/playground/hooks/", headers=HERE).json()["read"])


def arrives(path: str, body: str = '{"a": "ü"}', **headers: str) -> int:
    """A notification arrives there; the status."""
    return Client(enforce_csrf_checks=True).post(
        path, body, content_type="application/json", headers={**HERE, **headers}
    ).status_code  # fmt: skip


def there(path: str, after: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        Client().get(f"{path}?after={after}", headers=HERE).json()["deliveries"]
    )
    return found


class TestWhetherItIsThere:
    def test_by_default_on_the_embedded_host_alone(self, settings: Settings) -> None:
        settings.A2A_PLAYGROUND = "auto"
        settings.A2A_EMBEDDED = True
        assert playground.has_playground()
        settings.A2A_EMBEDDED = False
        assert not playground.has_playground()

    def test_without_it_nothing_is_received(self, settings: Settings) -> None:
        path = opened()
        settings.A2A_PLAYGROUND = "0"
        assert arrives(path) == 404
        assert Client().get("/playground/hooks/", headers=HERE).status_code == 404


class TestAWebhook:
    def test_shows_what_arrived_in_order(self) -> None:
        path = opened()
        assert [arrives(path, text, webhook_id=text) for text in ("1", "2", "3")] == [204] * 3
        assert [each["body"] for each in there(path)] == ["1", "2", "3"]
        assert there(path)[0]["headers"]["webhook-id"] == "1"

    def test_shows_what_came_after_a_number(self) -> None:
        path = opened()
        for text in ("1", "2", "3"):
            arrives(path, text)
        second = int(there(path)[1]["number"])
        assert [each["body"] for each in there(path, second)] == ["3"]

    def test_is_not_another_ones_even_in_the_same_drawer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(playground, "INBOXES", 1)
        mine, other = opened(), opened()
        arrives(mine, "mine")
        assert there(other) == []
        assert [each["body"] for each in there(mine)] == ["mine"]

    def test_keeps_no_more_than_there_is_room_for(self) -> None:
        path = opened()
        for number in range(playground.PLACES + 5):
            arrives(path, str(number))
        kept = [each["body"] for each in there(path)]
        assert kept == [str(number) for number in range(5, playground.PLACES + 5)]

    def test_does_not_keep_what_is_too_large(self) -> None:
        path = opened()
        assert arrives(path, "x" * (playground.LARGEST + 1)) == 204
        assert len(there(path)[0]["body"]) < 100

    def test_has_an_address_that_nobody_else_can_make(self) -> None:
        path = opened()
        assert arrives(path + "x") == 404
        assert arrives("/playground/hooks/guessed") == 404
        assert Client().get("/playground/hooks/guessed", headers=HERE).status_code == 404

    def test_receives_for_a_while_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        path = opened()
        monkeypatch.setattr(playground, "GOOD_FOR", 0)
        assert arrives(path) == 404

    def test_has_the_public_address_if_there_is_one(self, settings: Settings) -> None:
        settings.A2A_PUBLIC_URL = "https://agents.example.com/"
        answer = Client().get("/playground/hooks/", headers=HERE).json()
        assert answer["url"] == f"https://agents.example.com{answer['read']}"

    def test_is_looked_at_and_told_only(self) -> None:
        assert Client().put(opened(), headers=HERE).status_code == 405
        assert Client().post("/playground/hooks/", headers=HERE).status_code == 405


def test_a_number_longer_than_any_is_the_beginning() -> None:
    path = opened()
    arrives(path)
    answer = Client().get(path, {"after": "9" * 5000}, headers=HERE)
    assert len(answer.json()["deliveries"]) == 1


class Executed:
    """What would be called while it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("code from Redis was run",)


@pytest.mark.backend("stack")
def test_what_somebody_wrote_to_redis_is_not_run() -> None:
    path = opened()
    arrives(path)
    cache: Any = caches[playground.CACHE]
    inbox = playground._inbox(path.rpartition("/")[2])
    redis = cache._cache.get_client()
    written = [key for key in redis.keys(f"*{cache.key_prefix}*") if inbox in key.decode()]
    assert len(written) == 2
    for key in written:
        redis.set(key, pickle.dumps(Executed()))
    with pytest.raises(ValueError):
        there(path)
