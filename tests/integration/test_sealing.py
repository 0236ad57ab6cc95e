"""Secrets at rest: sealed by one key, opened by any that is known, and never told."""

from __future__ import annotations

import io

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django import Settings

from a2a_push.checks import check_secret_keys
from a2a_push.models import PushConfig
from a2a_push.store import configs
from a2a_tasks import sealing
from a2a_tasks.store import sealed_columns
from tests.support.push.configs import CREDENTIALS, config, registered
from tests.support.store.world import ALICE, accepted


def key() -> str:
    """A new key."""
    return Fernet.generate_key().decode()


class TestSealing:
    def test_comes_back_as_it_was(self) -> None:
        for text in ("", "x", "é\U0001f600\x00\n", "long" * 10_000):
            assert sealing.unseal(sealing.seal(text)) == text

    def test_of_nothing_is_nothing(self) -> None:
        assert sealing.seal("") == sealing.unseal("") == sealing.reseal("") == ""

    def test_is_never_the_same_twice(self) -> None:
        assert sealing.seal("x") != sealing.seal("x")

    def test_shows_nothing_of_it(self) -> None:
        assert CREDENTIALS not in sealing.seal(CREDENTIALS)

    @pytest.mark.parametrize("broken", ["x", "gAAAA", "é"])
    def test_of_another_kind_is_unreadable(self, broken: str) -> None:
        for read in (sealing.unseal, sealing.reseal):
            with pytest.raises(sealing.Unsealable):
                read(broken)

    def test_that_was_changed_is_unreadable(self) -> None:
        sealed = sealing.seal(CREDENTIALS)
        other = "A" if sealed[60] != "A" else "B"
        with pytest.raises(sealing.Unsealable) as caught:
            sealing.unseal(sealed[:60] + other + sealed[61:])
        assert caught.value.args == ()
        assert caught.value.__suppress_context__


class TestKeys:
    def test_are_made_of_djangos(self, settings: Settings) -> None:
        settings.SECRET_KEY = "one"
        sealed = sealing.seal("x")
        settings.SECRET_KEY = "two"
        with pytest.raises(sealing.Unsealable):
            sealing.unseal(sealed)

    def test_may_be_bytes_in_django(self, settings: Settings) -> None:
        settings.SECRET_KEY = "one"
        sealed = sealing.seal("x")
        settings.SECRET_KEY = b"one"
        assert sealing.unseal(sealed) == "x"

    def test_that_fell_back_still_open(self, settings: Settings) -> None:
        settings.SECRET_KEY = "one"
        sealed = sealing.seal("x")
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "two", ["zero", "one"]
        assert sealing.unseal(sealed) == "x"
        fresh = sealing.reseal(sealed)
        settings.SECRET_KEY_FALLBACKS = []
        assert sealing.unseal(fresh) == "x"

    def test_of_our_own_are_independent_of_djangos(self, settings: Settings) -> None:
        settings.A2A_SECRET_KEYS = key()
        sealed = sealing.seal("x")
        settings.SECRET_KEY = "another"
        assert sealing.unseal(sealed) == "x"

    def test_of_our_own_take_over_from_djangos(self, settings: Settings) -> None:
        sealed = sealing.seal("x")
        settings.A2A_SECRET_KEYS = key()
        assert sealing.unseal(sealed) == "x"
        fresh = sealing.reseal(sealed)
        settings.SECRET_KEY = "another"
        assert sealing.unseal(fresh) == "x"

    def test_are_newest_first(self, settings: Settings) -> None:
        old, new = key(), key()
        settings.A2A_SECRET_KEYS = old
        sealed = sealing.seal("x")
        settings.A2A_SECRET_KEYS = f" {new} , {old},"
        assert sealing.unseal(sealed) == "x"
        fresh = sealing.seal("y")
        settings.A2A_SECRET_KEYS = new
        assert sealing.unseal(fresh) == "y"
        with pytest.raises(sealing.Unsealable):
            sealing.unseal(sealed)

    @pytest.mark.parametrize("wrong", ["short", "é" * 44, "A" * 43, f"{'A' * 43}=,hush"])
    def test_that_are_none_are_a_system_check_which_tells_nothing(
        self, wrong: str, settings: Settings
    ) -> None:
        settings.A2A_SECRET_KEYS = wrong
        (error,) = check_secret_keys()
        assert error.id == "a2a_push.E001"
        assert "A2A_SECRET_KEYS" in error.msg
        assert wrong not in str(error)
        assert "hush" not in str(error)

    def test_that_are_well_pass_the_check(self, settings: Settings) -> None:
        assert list(check_secret_keys()) == []
        settings.A2A_SECRET_KEYS = f"{key()},{key()}"
        assert list(check_secret_keys()) == []


@pytest.mark.django_db
class TestRotation:
    def test_makes_older_keys_needless(self, settings: Settings) -> None:
        old, new = key(), key()
        settings.A2A_SECRET_KEYS = old
        tasks = [accepted(f"task-{number}").task for number in (1, 2)]
        registered(task_id="task-1")
        registered(task_id="task-2")
        registered("c-2", task_id="task-2", token="", credentials="", headers={})
        settings.A2A_SECRET_KEYS = f"{new},{old}"
        said = io.StringIO()
        call_command("reseal", stdout=said)
        assert said.getvalue() == "2 sealed with the newest key\n"
        settings.A2A_SECRET_KEYS = new
        assert configs.with_secrets(tasks[0])[0][1] == config()
        assert [found.id for _, found in configs.with_secrets(tasks[1])] == ["c-1", "c-2"]

    def test_goes_on_past_slices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sealed_columns, "SLICE", 2)
        accepted()
        for number in range(5):
            registered(f"c-{number}")
        before = set(PushConfig.objects.values_list("secret", flat=True))
        assert sealed_columns.reseal(configs.SECRETS) == (5, 0)
        assert before.isdisjoint(PushConfig.objects.values_list("secret", flat=True))

    def test_leaves_what_no_key_opens_and_says_so(self, settings: Settings) -> None:
        task = accepted().task
        registered("c-1")
        lost = PushConfig.objects.get().secret
        settings.SECRET_KEY = "another"
        registered("c-2")
        said = io.StringIO()
        with pytest.raises(CommandError, match="1 are opened by no key"):
            call_command("reseal", stdout=said)
        assert said.getvalue() == "1 sealed with the newest key\n"
        assert PushConfig.objects.get(public_id="c-1").secret == lost
        with pytest.raises(sealing.Unsealable):
            configs.with_secrets(task)

    def test_is_not_needed_to_read_what_is_no_secret(self, settings: Settings) -> None:
        accepted()
        shown = registered()
        settings.SECRET_KEY = "another"
        PushConfig.objects.update(secret="broken")
        assert configs.get(ALICE, "task-1", "c-1") == shown
