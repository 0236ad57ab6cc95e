"""Of the tasks of a tree, too, others can tell nothing: of the task that calls, and of the one that was called and asks.

The caller of the first owns both. She sees, follows, answers and cancels each of them; everybody else hears of each what
is said of a task that is not there.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_tasks.models import Delegation, Run
from a2a_tasks.store.db import run_in_thread
from lab.matrix.asks import AnyWire, Named, wires
from lab.matrix.test_matrix import ADMITTED, Case, refused_alike
from tests.support.access.issuer import Issuer
from tests.support.bindings.client import Client
from tests.support.execution.waiting import until

pytestmark = pytest.mark.usefixtures("host", "agents")
#: What is asked of each task.
OPERATIONS = {
    "SendMessage to a task",
    "SendStreamingMessage to a task",
    "GetTask",
    "ListTasks of a context",
    "CancelTask",
    "SubscribeToTask",
}
#: The agents of the tree: one calls the other.
PLACES = ["planner", "ledger"]


class TreeCase(Case):
    """A case in which each task of Alice's is one of a tree."""

    async def prepare(self) -> None:
        """Give Alice a tree for each operation on each of its tasks."""
        self.operations = [one for one in self.operations if one in OPERATIONS]
        for slug in PLACES:
            for operation in self.operations:
                self.prizes[slug, operation] = await self.prize(slug)

    async def prize(self, slug: str = "ledger") -> Named:
        """A task of a tree whose question stands in both."""
        root = await self.task("the owner", "ask", "planner")
        await until(lambda: run_in_thread(is_parked, root.task))
        if slug == "planner":
            return root
        child, context = await run_in_thread(find_child, root.task)
        return replace(root, task=child, context=context)


def is_parked(root: str) -> bool:
    """Is the run of the task parked? For a thread with a connection."""
    return Run.objects.filter(task__public_id=root).latest("pk").is_parked


def find_child(root: str) -> tuple[str, str]:
    """The ids of the called task and of its context. For a thread with a connection."""
    calls = Delegation.objects.filter(parent__public_id=root)
    (found,) = calls.values_list("child__public_id", "child__context__public_id")
    return found


async def nobody_can_tell(case: TreeCase) -> None:
    """Everybody asks for each task of Alice's trees; she alone gets it."""
    await case.prepare()
    for slug in PLACES:
        for who in ADMITTED:
            await case.strangers(who, slug)
        refused_alike(await case.strangers("anonymous", slug), 401)
    for slug in PLACES:
        for operation in case.operations:
            found, absent, _ = await case.compared("the owner", slug, operation)
            assert found != absent, (slug, operation)
            assert not found.refused, (slug, operation)


# Where clients name their tasks, the name of another's task begins a tree of one's own.
@pytest.mark.parametrize(
    "wire", [one for one in wires() if not one.grammar.names_tasks], ids=lambda wire: wire.name
)
async def test_nobody_can_tell_of_the_tasks_of_a_tree(
    wire: AnyWire, client: Client, issuer: Issuer
) -> None:
    await nobody_can_tell(TreeCase(wire, client, issuer))
