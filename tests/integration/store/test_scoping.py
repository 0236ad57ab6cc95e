"""Who sees which task: its maker always, the others of its tenant while, and only if, it was and is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from a2a_tasks.caller import TENANTS, Caller, OwnerScope
from a2a_tasks.models import Context, Tally, Task
from a2a_tasks.protocol.errors import (
    IdempotencyConflict,
    InvalidParams,
    TaskNotCancelable,
    TaskNotFound,
)
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import task_counter, tasks
from a2a_tasks.store.accept import accept
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.idempotency import IdempotencyKey, recall, remember
from a2a_tasks.store.records import Accepted, TaskExists
from a2a_tasks.store.replies import reply
from a2a_tasks.store.scoping import reaches
from a2a_tasks.store.tenancy import within
from tests.support.store.world import new, said

pytestmark = [pytest.mark.quick_on("stack"), pytest.mark.django_db]

ALICE = Caller(principal="key:alice", tenant="acme")
BOB = Caller(principal="key:bob", tenant="acme")
MALLORY = Caller(principal="key:mallory", tenant="umbrella")
NOBODYS = Caller(principal="user:7")
EVERYBODY = (ALICE, BOB, MALLORY, NOBODYS)


def own(caller: Caller) -> OwnerScope:
    """The scope while everybody sees their own."""
    return caller.scope("demo")


def shared(caller: Caller) -> OwnerScope:
    """The scope while tenants share."""
    return caller.scope("demo", shared=True)


Policy = Callable[[Caller], OwnerScope]


def begin(caller: Caller, policy: Policy, task: str = "task-1", **more: Any) -> Accepted:
    """A task that a caller makes while that is the policy."""
    return accept(new(task, scope=policy(caller), principal=caller.principal, **more))


def sees(caller: Caller, policy: Policy, task: str = "task-1") -> bool:
    """May the caller? Every way to look at a task says the same."""
    scope = policy(caller)
    found = tasks.find(scope, task) is not None
    assert (tasks.key_of(scope, task) is not None) == found
    assert (tasks.key_of(scope, task, lock=True) is not None) == found
    assert bool(tasks.origin(scope, task)) == found
    assert bool(tasks.references(scope, [task])) == found
    page = tasks.list_tasks(scope, ListTasksRequest())
    assert (task in [one.id for one in page.tasks]) == found
    assert page.total_size == len(page.tasks)
    return found


class TestATask:
    def test_is_its_makers_alone_by_default(self) -> None:
        begin(ALICE, own)
        assert [caller for caller in EVERYBODY if sees(caller, own)] == [ALICE]
        row = Task.objects.get()
        assert (row.owner, row.created_by) == ("key:alice", "")

    def test_is_the_tenants_where_that_is_the_policy(self) -> None:
        begin(ALICE, shared)
        assert [caller for caller in EVERYBODY if sees(caller, shared)] == [ALICE, BOB]
        row = Task.objects.get()
        assert (row.owner, row.created_by) == (TENANTS, "key:alice")

    @pytest.mark.parametrize("maker", [NOBODYS, Caller()], ids=["known", "anonymous"])
    def test_of_somebody_without_a_tenant_is_never_shared(self, maker: Caller) -> None:
        begin(maker, shared)
        assert sees(maker, shared)
        assert sees(maker, own)
        other = Caller(principal="user:8")
        assert not any(sees(caller, shared) for caller in (ALICE, MALLORY, other))
        assert other.scope("demo", "acme", shared=True) != shared(ALICE)

    def test_made_before_it_was_shared_stays_its_makers_alone(self) -> None:
        begin(ALICE, own)
        assert [caller for caller in EVERYBODY if sees(caller, shared)] == [ALICE]

    def test_made_while_it_was_shared_is_its_makers_alone_afterwards(self) -> None:
        begin(ALICE, shared)
        assert [caller for caller in EVERYBODY if sees(caller, own)] == [ALICE]

    def test_is_not_shared_across_agents_nor_across_what_requests_name(self) -> None:
        begin(ALICE, shared)
        for scope in (
            BOB.scope("tables", shared=True),
            BOB.scope("demo", "x", shared=True),
        ):
            assert tasks.find(scope, "task-1") is None


class TestOfTwoWithOneId:
    """One was made before the policy changed, the other after, by a colleague who could not know."""

    @pytest.fixture(autouse=True)
    def two(self) -> None:
        begin(BOB, own, "t", context_id="bobs")
        begin(ALICE, shared, "t", context_id="alices")

    def test_everybody_means_the_older(self) -> None:
        found = tasks.find(shared(BOB), "t")
        assert found is not None
        assert found.view.context_id == "bobs"
        assert tasks.key_of(shared(BOB), "t") == found.task
        assert cancel(shared(BOB), "t").context_id == "bobs"
        assert Task.objects.filter(state=TaskState.CANCELED).get().pk == found.task

    def test_somebody_else_means_the_only_one_there_is(self) -> None:
        found = tasks.find(shared(ALICE), "t")
        assert found is not None
        assert found.view.context_id == "alices"


class TestColleagues:
    def test_go_on_with_each_others_tasks(self) -> None:
        begin(ALICE, shared)
        answer = new(scope=shared(BOB), principal=BOB.principal, context_id="", message=said("b"))
        accepted = reply(answer)
        assert accepted.view.history
        assert len(accepted.view.history) == 2
        assert Task.objects.get().created_by == "key:alice"

    def test_cancel_each_others_tasks(self) -> None:
        begin(ALICE, shared)
        assert cancel(shared(BOB), "task-1").status.state is TaskState.CANCELED
        with pytest.raises(TaskNotCancelable):
            cancel(shared(ALICE), "task-1")

    def test_share_contexts(self) -> None:
        begin(ALICE, shared, "a")
        begin(BOB, shared, "b")
        assert Context.objects.get().owner == TENANTS
        asked = ListTasksRequest(context_id="context-1")
        page = tasks.list_tasks(shared(ALICE), asked)
        assert ({task.id for task in page.tasks}, page.total_size) == ({"a", "b"}, 2)

    def test_cannot_make_two_of_one_id(self) -> None:
        begin(ALICE, shared)
        with pytest.raises(TaskExists):
            begin(BOB, shared)

    def test_of_another_tenant_can_and_notice_nothing(self) -> None:
        begin(ALICE, shared)
        begin(MALLORY, shared)
        assert Task.objects.count() == Context.objects.count() == 2

    def test_have_keys_of_their_own(self) -> None:
        keys = [
            IdempotencyKey(caller.own("demo"), "key/1", caller.principal) for caller in (ALICE, BOB)
        ]
        for caller, key in zip((ALICE, BOB), keys, strict=True):
            begin(caller, shared, caller.principal, companions=(remember(key),))
        for caller, key in zip((ALICE, BOB), keys, strict=True):
            recalled = recall(key, shared(caller))
            assert recalled is not None
            assert recalled.accepted.view.id == caller.principal


class TestWhatGoesOn:
    """A message goes to where its task is, whatever the policy is now."""

    @pytest.mark.parametrize("before", [own, shared])
    def test_stays_in_its_drawer(self, before: Policy) -> None:
        begin(ALICE, before, dialect="v01")
        after = shared if before is own else own
        again = new(scope=after(ALICE), principal=ALICE.principal, reopens=True)
        assert reply(again).view.history
        cancel(after(ALICE), "task-1")
        begun_anew = reply(again)
        old, successor = Task.objects.order_by("pk")
        assert begun_anew.task == successor.pk
        assert (successor.owner, successor.created_by) == (old.owner, old.created_by)
        assert Context.objects.count() == 1

    def test_does_not_for_those_who_see_it_no_longer(self) -> None:
        begin(ALICE, shared)
        answer = new(scope=own(BOB), principal=BOB.principal, context_id="")
        with pytest.raises(TaskNotFound):
            reply(answer)
        with pytest.raises(TaskNotFound):
            cancel(own(BOB), "task-1")

    def test_is_not_recalled_by_a_key_from_the_time_when_it_was_shared(self) -> None:
        begin(ALICE, shared)
        key = IdempotencyKey(BOB.own("demo"), "key/1", "f")
        companions = (remember(key),)
        reply(new(scope=shared(BOB), principal=BOB.principal, context_id="", companions=companions))
        assert recall(key, shared(BOB)) is not None
        with pytest.raises(TaskNotFound):
            recall(key, own(BOB))
        with pytest.raises(IdempotencyConflict):
            recall(IdempotencyKey(key.scope, key.name, "another request"), own(BOB))


class TestAPage:
    """Of two drawers at once."""

    @pytest.fixture(params=[own, shared])
    def policy(self, request: pytest.FixtureRequest) -> Policy:
        policy: Policy = request.param
        for number in range(5):
            begin(ALICE, (own, shared)[number % 2], f"a{number}", context_id=f"c{number}")
            begin(BOB, shared, f"b{number}")
        return policy

    def visible(self, policy: Policy) -> set[str]:
        """What Alice sees, by definition."""
        bobs = {f"b{n}" for n in range(5)} if policy is shared else set()
        return {f"a{n}" for n in range(5)} | bobs

    def pages(self, scope: OwnerScope, size: int) -> Iterator[Any]:
        """All pages of a list."""
        token = ""
        while True:
            page = tasks.list_tasks(scope, ListTasksRequest(page_size=size, page_token=token))
            yield page
            if not (token := page.next_page_token):
                return

    @pytest.mark.parametrize("size", [1, 2, 3, 100])
    def test_has_each_task_once_and_in_order(self, policy: Policy, size: int) -> None:
        pages = list(self.pages(policy(ALICE), size))
        ids = [task.id for page in pages for task in page.tasks]
        assert set(ids) == self.visible(policy)
        assert len(ids) == len(set(ids))
        stamps = [task.status.timestamp for page in pages for task in page.tasks]
        assert stamps == sorted(stamps, reverse=True)
        assert {page.total_size for page in pages} == {len(ids)}

    def test_counts_what_the_tally_has_passed(
        self, policy: Policy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(task_counter, "STRIDE", 0)
        monkeypatch.setattr(task_counter, "_horizon", lambda: Task.objects.latest("pk").pk - 3)
        for _ in range(2):
            page = tasks.list_tasks(policy(ALICE), ListTasksRequest())
            assert page.total_size == len(self.visible(policy))
        assert Tally.objects.exists()

    def test_takes_no_token_of_another_list(self, policy: Policy) -> None:
        token = tasks.list_tasks(policy(ALICE), ListTasksRequest(page_size=1)).next_page_token
        with pytest.raises(InvalidParams):
            tasks.list_tasks(policy(MALLORY), ListTasksRequest(page_token=token))


class TestWithinTenants:
    def test_are_they_and_those_below_them(self) -> None:
        tenants = ["", "acme", "acme/eu", "acme/eu/berlin", "acme2", "Acme/eu", "acm", "acme_eu"]
        for tenant in tenants:
            Context.objects.create(tenant=tenant, owner="o", public_id="c", agent="demo")

        def found(*within_: str) -> set[str]:
            return set(Context.objects.filter(within(within_)).values_list("tenant", flat=True))

        assert found("acme") == {"acme", "acme/eu", "acme/eu/berlin"}
        assert found("acme/eu") == {"acme/eu", "acme/eu/berlin"}
        assert found("") == {""}
        assert found("acm", "acme2") == {"acm", "acme2"}
        assert found() == set()


@pytest.mark.parametrize(
    ("task", "is_reached"),
    [
        ({}, True),
        ({"tenant": "umbrella"}, False),
        ({"agent": "other"}, False),
        ({"owner": "key:bob"}, False),
        ({"owner": "key:bob", "created_by": "key:alice"}, False),
    ],
    ids=str,
)
def test_a_task_is_reached_by_its_owner_at_its_agent_in_its_tenant_alone(
    task: dict[str, str], *, is_reached: bool
) -> None:
    mine = {"tenant": "acme", "agent": "demo", "owner": "key:alice", **task}
    assert reaches(own(ALICE), Task(**mine)) is is_reached
