"""Webhooks of tasks in the store: one contract for both databases."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.core import signing
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from a2a_push.models import PushConfig
from a2a_push.store import configs
from a2a_tasks.caller import OwnerScope, scope_in
from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import InvalidParams, RateLimited, TaskNotFound
from a2a_tasks.protocol.values import replace
from a2a_tasks.store.tasks import key_of
from tests.support.push.configs import SECRETS, URL, config, ids, page, registered, tells_none
from tests.support.store.world import ALICE, BOB, CHARLIE, Pen, accepted, held

pytestmark = pytest.mark.django_db

#: Everything that can be asked of a task's webhooks, with the id of one.
ASKED: dict[str, Callable[[OwnerScope, str], object]] = {
    "create": lambda scope, task: configs.create(scope, config(task_id=task)),
    "get": lambda scope, task: configs.get(scope, task, "c-1"),
    "get without an id": lambda scope, task: configs.get(scope, task),
    "list": lambda scope, task: page(task, scope=scope),
    "delete": lambda scope, task: configs.delete(scope, task, "c-1"),
}
asked = pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)


def test_what_was_added_to_a_webhook_needs_not_be_said_by_code_that_does_not_know_it() -> None:
    """Processes of the version before may still write while a host is rolled."""
    accepted()
    registered()
    row = PushConfig.objects.get()
    said = "task_id, public_id, dialect, url, schemes, secret, receiver_id"
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into a2a_push_pushconfig ({said}) values (%s, 'c-2', 'v10', '', '[]', '', %s)",  # noqa: S608
            [row.task_id, row.receiver_id],
        )
    written = PushConfig.objects.get(public_id="c-2")
    assert (written.cursor, written.looked, written.active, written.token) == (0, 0, True, "")
    assert (written.worker, written.disabled_reason) == ("", "")


class TestATaskThatIsNotThere:
    @asked
    @pytest.mark.parametrize("task", ["task-2", "", "task\x001"])
    def test_is_not_found(self, ask: Callable[[OwnerScope, str], object], task: str) -> None:
        """R-060, R-062."""
        accepted()
        registered()
        with pytest.raises(TaskNotFound):
            ask(ALICE, task)

    @asked
    @pytest.mark.parametrize("scope", [BOB, CHARLIE], ids=["another owner", "another tenant"])
    def test_is_what_anothers_is(
        self, ask: Callable[[OwnerScope, str], object], scope: OwnerScope
    ) -> None:
        accepted()
        registered()
        with pytest.raises(TaskNotFound) as foreign:
            ask(scope, "task-1")
        with pytest.raises(TaskNotFound) as missing:
            ask(scope, "task-2")
        assert foreign.value.message == missing.value.message
        assert foreign.value.metadata == {"taskId": "task-1"}
        assert ids() == ["c-1"], "and it is not touched"

    @asked
    def test_is_what_is_not_shown_to_clients(
        self, ask: Callable[[OwnerScope, str], object]
    ) -> None:
        accepted(is_task=False)
        with pytest.raises(TaskNotFound):
            ask(ALICE, "task-1")


class TestCreate:
    def test_keeps_everything(self) -> None:
        task = accepted().task
        registered()
        ((key, kept),) = configs.with_secrets(task)
        assert kept == config()
        assert key == PushConfig.objects.get().pk

    def test_answers_with_what_a_read_gives(self) -> None:
        """R-062."""
        accepted()
        assert registered() == configs.get(ALICE, "task-1", "c-1") == page().configs[0]

    def test_gives_no_secret_back(self) -> None:
        accepted()
        bare = replace(config(), token="", credentials="", headers={})
        assert registered() == bare
        assert bare.schemes == ("Bearer", "Basic")

    def test_with_the_same_id_replaces_the_whole(self) -> None:
        task = accepted().task
        registered()
        key = PushConfig.objects.get().pk
        other = config(url="http://b.example", token="", headers={}, schemes=(), dialect="v03")
        configs.create(ALICE, other)
        assert configs.with_secrets(task) == [(key, other)]

    def test_that_replaces_keeps_the_place(self) -> None:
        accepted()
        registered("c-1")
        registered("c-2")
        registered("c-1", url="https://b.example")
        assert ids() == ["c-1", "c-2"]

    def test_of_one_id_for_two_tasks_makes_two(self) -> None:
        accepted("task-1")
        accepted("task-2")
        registered()
        registered(task_id="task-2", url="https://b.example")
        assert configs.get(ALICE, "task-1", "c-1").url == URL
        assert configs.get(ALICE, "task-2", "c-1").url == "https://b.example"

    def test_is_allowed_on_a_task_that_has_ended(self) -> None:
        """The TCK does so (dialects §7.2)."""
        Pen(held()).end()
        registered()
        assert ids() == ["c-1"]

    def test_stops_at_the_most_a_task_may_have_and_says_so(self, settings: Settings) -> None:
        settings.A2A_MAX_PUSH_CONFIGS = 2
        accepted()
        registered("c-1")
        registered("c-2")
        with pytest.raises(InvalidParams) as caught:
            registered("c-3")
        ((field, text),) = caught.value.violations
        assert field == "id"
        assert "at most 2 push notification configs" in text
        registered("c-2", url="https://b.example")
        assert ids() == ["c-1", "c-2"]
        configs.delete(ALICE, "task-1", "c-1")
        registered("c-3")
        assert ids() == ["c-2", "c-3"]

    def test_stops_at_the_most_a_caller_may_have_until_tasks_end(self, settings: Settings) -> None:
        settings.A2A_MAX_PUSH_CONFIGS_PER_CALLER = 2
        for number in (1, 2, 3):
            accepted(f"task-{number}")
        registered()
        registered(task_id="task-2")
        with pytest.raises(RateLimited):
            registered(task_id="task-3")
        registered(task_id="task-2", url="https://b.example")  # no new one
        accepted("task-1", scope=BOB)
        configs.create(BOB, config(task_id="task-1"))
        PushConfig.objects.filter(task__public_id="task-1").update(active=False)  # it has ended
        registered(task_id="task-3")

    def test_counts_what_tenants_share_for_whoever_made_it(self, settings: Settings) -> None:
        settings.A2A_MAX_PUSH_CONFIGS_PER_CALLER = 1
        acme, globex = (
            scope_in(name, f"key:{name}", "demo", shared=True) for name in ("acme", "globex")
        )
        for scope in (acme, globex):
            for task in ("task-1", "task-2"):
                accepted(task, scope=scope, principal=scope.principal)
        registered(scope=acme)
        registered(scope=globex)
        with pytest.raises(RateLimited):
            registered(scope=acme, task_id="task-2")

    def test_counts_each_task_for_itself(self, settings: Settings) -> None:
        settings.A2A_MAX_PUSH_CONFIGS = 1
        accepted("task-1")
        accepted("task-2")
        registered()
        registered(task_id="task-2")

    @pytest.mark.parametrize("text", ["é\U0001f600", "'; --", '"\\', "%s", "a\tb"])
    def test_takes_any_text(self, text: str) -> None:
        task = accepted().task
        whole = config(text, token=text, credentials=text, schemes=(text,), headers={text: text})
        configs.create(ALICE, whole)
        assert configs.with_secrets(task)[0][1] == whole
        assert configs.get(ALICE, "task-1", text).schemes == (text,)


class TestGet:
    def test_of_a_config_that_is_not_there_is_not_found(self) -> None:
        """R-062."""
        accepted()
        registered()
        for missing in ("c-2", "C-1", "c\x001", " c-1"):
            with pytest.raises(TaskNotFound):
                configs.get(ALICE, "task-1", missing)

    def test_without_an_id_is_that_named_as_the_task(self) -> None:
        """Dialects §3.3: "the default/first config"."""
        accepted()
        registered("c-1")
        registered("task-1")
        assert configs.get(ALICE, "task-1").id == "task-1"

    def test_without_an_id_is_else_the_oldest(self) -> None:
        accepted()
        for name in ("c-2", "c-1", "c-3"):
            registered(name)
        registered("c-2", url="https://b.example")
        assert configs.get(ALICE, "task-1").id == "c-2"

    def test_without_an_id_of_a_task_that_has_none_is_not_found(self) -> None:
        accepted()
        with pytest.raises(TaskNotFound):
            configs.get(ALICE, "task-1")


class TestPages:
    def test_show_each_once_oldest_first(self) -> None:
        """R-063."""
        accepted()
        names = [f"c-{number}" for number in (3, 1, 4, 5, 9, 2, 6)]
        for name in names:
            registered(name)
        shown, token = [], ""
        while True:
            found = page(page_size=3, page_token=token)
            shown += [config.id for config in found.configs]
            if not (token := found.next_page_token):
                break
        assert shown == names

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_end_without_an_empty_one(self, size: int) -> None:
        accepted()
        for number in range(size):
            registered(f"c-{number}")
        assert page(page_size=size).next_page_token == ""

    def test_of_a_task_without_any_is_empty(self) -> None:
        accepted()
        found = page()
        assert (found.configs, found.next_page_token) == ([], "")

    def test_go_on_though_the_last_one_shown_is_gone(self) -> None:
        accepted()
        for name in ("c-1", "c-2", "c-3"):
            registered(name)
        token = page(page_size=2).next_page_token
        configs.delete(ALICE, "task-1", "c-2")
        assert [config.id for config in page(page_token=token).configs] == ["c-3"]

    def test_refuse_a_token_that_is_not_theirs(self) -> None:
        accepted("task-1")
        accepted("task-2")
        accepted("task-1", scope=BOB)
        for name in ("c-1", "c-2"):
            registered(name)
            registered(name, task_id="task-2")
            registered(name, scope=BOB)
        token = page(page_size=1).next_page_token
        strangers = [
            page("task-2", page_size=1).next_page_token,
            page(page_size=1, scope=BOB).next_page_token,
            signing.dumps(0),
            token[:-1],
            token + "x",
            "x",
            "\x00",
        ]
        for stranger in strangers:
            with pytest.raises(InvalidParams, match="Invalid") as caught:
                page(page_token=stranger)
            assert caught.value.violations[0][0] == "pageToken"


class TestDelete:
    def test_takes_one_away(self) -> None:
        accepted()
        registered("c-1")
        registered("c-2")
        configs.delete(ALICE, "task-1", "c-1")
        assert ids() == ["c-2"]

    @pytest.mark.parametrize("name", ["c-1", "never", "", "c\x001"])
    def test_may_be_said_again(self, name: str) -> None:
        """R-064."""
        accepted()
        registered("c-1")
        registered("c-2")
        for _ in range(2):
            configs.delete(ALICE, "task-1", "c-1")
            configs.delete(ALICE, "task-1", name)
        assert ids() == ["c-2"]


class TestSuccession:
    def test_the_successor_takes_over(self) -> None:
        old, new = accepted("old").task, accepted("new").task
        registered("c-1", task_id="old")
        registered("c-2", task_id="old")
        keys = list(PushConfig.objects.values_list("pk", flat=True))
        configs.move(old, new)
        assert ids("old") == []
        assert ids("new") == ["c-1", "c-2"]
        assert list(PushConfig.objects.values_list("pk", flat=True)) == keys
        assert configs.with_secrets(new)[0][1] == config(task_id="new")

    def test_what_the_successor_has_stays(self) -> None:
        old, new = accepted("old").task, accepted("new").task
        registered("c-1", task_id="old")
        registered("c-1", task_id="new", url="https://b.example")
        configs.move(old, new)
        assert ids("old") == []
        assert configs.get(ALICE, "new", "c-1").url == "https://b.example"

    def test_stops_at_the_most_if_the_successor_comes_with_its_own(
        self, settings: Settings
    ) -> None:
        settings.A2A_MAX_PUSH_CONFIGS = 2
        old, new = accepted("old").task, accepted("new").task
        registered("c-1", task_id="old")
        registered("c-2", task_id="old")
        registered("c-3", task_id="new")
        with pytest.raises(InvalidParams) as caught:
            configs.move(old, new)
        assert caught.value.violations[0][0] == configs.INLINE
        assert (len(ids("old")), len(ids("new"))) == (2, 1)
        settings.A2A_MAX_PUSH_CONFIGS = 1
        configs.delete(ALICE, "new", "c-3")
        configs.move(old, new)
        assert len(ids("new")) == 2, "they were there already"

    def test_of_a_task_without_webhooks_is_nothing(self) -> None:
        old, new = accepted("old").task, accepted("new").task
        configs.move(old, new)
        assert ids("new") == []


class TestTheRow:
    def test_holds_no_secret_to_be_read(self) -> None:
        accepted()
        registered()
        row = PushConfig.objects.get()
        tells_none(row)
        tells_none(row.__dict__)
        tells_none(list(PushConfig.objects.values()))
        assert not any(secret in json.dumps(row.secret) for secret in SECRETS)

    def test_without_secrets_has_nothing_sealed(self) -> None:
        accepted()
        registered(token="", credentials="", headers={})
        assert PushConfig.objects.get().secret == ""

    def test_has_an_id_once_a_task(self) -> None:
        task = accepted().task
        registered()
        with pytest.raises(IntegrityError), transaction.atomic():
            PushConfig.objects.create(task_id=task, public_id="c-1", dialect="v10", url=URL)

    def test_goes_with_its_task(self) -> None:
        accepted()
        registered()
        PushConfig.objects.get().task.runs.all().delete()
        Task.objects.all().delete()
        assert not PushConfig.objects.exists()


class TestTheDoor:
    def test_opens_to_the_tasks_of_the_scope_only(self) -> None:
        key = accepted().task
        assert key_of(ALICE, "task-1") == key_of(ALICE, "task-1", lock=True) == key
        assert key_of(BOB, "task-1") is None
        assert key_of(CHARLIE, "task-1") is None
        assert key_of(ALICE, "task-2") is None
        assert key_of(ALICE, "task\x001") is None

    def test_does_not_open_to_what_is_no_task(self) -> None:
        accepted(is_task=False)
        assert key_of(ALICE, "task-1") is None
