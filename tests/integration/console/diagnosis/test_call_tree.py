"""The tree of tasks that agents have given each other: its lines, and the task for which all wait."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from a2a_console.diagnosis.call_tree import find_leaf, read_tree
from a2a_console.diagnosis.reasons import diagnose
from a2a_console.queue.waiting import list_waiting
from a2a_tasks.models import PARKED, Delegation, Run, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import call_trees
from tests.support.console.api.world import asked, person
from tests.support.store.world import Pen, accepted, held

pytestmark = pytest.mark.django_db


def make_call(parent: int, child: int, root: int, depth: int, **about: Any) -> Delegation:
    """Let a task have called another one, and wait for it."""
    Run.objects.filter(task=parent).update(status="queued", token="", lease_until=None)
    Run.objects.filter(task=parent).update(round=PARKED, awaits_calls=True, parked_in="call")
    Task.objects.filter(pk=parent).update(run_token="", state=TaskState.WORKING)
    values: dict[str, Any] = {"parent_id": parent, "child_id": child, "root": root, "depth": depth}
    values |= {"input_number": 1, "name": f"call {depth}", "path": "[]", "questions": "relay"}
    return Delegation.objects.create(**values, at_end="cancel", **about)


@pytest.fixture
def chain() -> list[int]:
    """Three tasks, each of which has called the next; the last one asks its client."""
    root, middle = (accepted(name).task for name in ("root", "middle"))
    leaf = held("leaf")
    make_call(root, middle, root, 1)
    make_call(middle, leaf.task, root, 2)
    Pen(leaf).end(TaskState.INPUT_REQUIRED)
    Run.objects.filter(task__in=[root, middle]).update(due_at="2100-01-01T00:00Z")
    return [root, middle, leaf.task]


def test_a_tree_is_the_same_from_each_of_its_tasks(chain: list[int]) -> None:
    for task in chain:
        found = read_tree(task)
        assert [(each.key, each.depth, each.parent) for each in found] == [
            (chain[0], 0, None),
            (chain[1], 1, chain[0]),
            (chain[2], 2, chain[1]),
        ]


def test_a_task_without_calls_has_no_tree() -> None:
    assert read_tree(accepted("alone").task) == []


def test_the_page_of_each_names_the_others_and_who_began_it(
    chain: list[int], admin_client: Client
) -> None:
    Task.objects.filter(pk=chain[0]).update(origin_binding="JSONRPC")
    pages = [
        admin_client.get(f"/admin/a2a_tasks/task/{key}/live/tab/?tab=facts").text for key in chain
    ]
    assert [page.count("call of another agent") for page in pages] == [0, 1, 1]
    for own, page in zip(chain, pages, strict=True):
        links = [f'href="/admin/a2a_tasks/task/{key}/change/"' in page for key in chain]
        assert links == [key != own for key in chain]
    above = admin_client.get(f"/admin/a2a_tasks/task/{chain[1]}/live/top/").text
    assert f'called by <a href="/admin/a2a_tasks/task/{chain[0]}/change/"' in above


def test_a_task_waits_for_what_its_leaf_waits_for(chain: list[int]) -> None:
    leaf = find_leaf(chain[0])
    assert leaf is not None
    assert leaf.key == chain[2]
    for task in chain[:2]:
        found = diagnose(task)
        assert found.kind == "calls"
        assert found.sentence.startswith("Waits for the task leaf of demo. Waiting for input from")
        assert (found.needs, found.link and found.link.key) == ("client", chain[2])
    assert diagnose(chain[2]).kind == "input"


def test_a_question_that_stands_in_all_of_them_is_one_for_the_inbox(chain: list[int]) -> None:
    call_trees.settle(chain[2])
    assert {Task.objects.get(pk=task).state for task in chain} == {TaskState.INPUT_REQUIRED}
    assert [task.pk for task in list_waiting()] == [chain[2]]


def test_the_page_and_the_api_and_the_command_show_it(
    chain: list[int], admin_client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    page = admin_client.get(f"/admin/a2a_tasks/task/{chain[1]}/change/?tab=facts").content.decode()
    assert "— demo this task (working)" in page
    assert f"/admin/a2a_tasks/task/{chain[2]}/change/" in page
    operator = person("a2a_tasks.view_task", "a2a_tasks.view_context", "a2a_tasks.view_run")
    shown = asked(operator, f"/tasks/{chain[1]}").json["tree"]
    assert [(each["id"], each["state"], each["called_by"]) for each in shown] == [
        ("root", "working", None),
        ("middle", "working", chain[0]),
        ("leaf", "input-required", chain[1]),
    ]
    call_command("a2a", "why", "root")
    assert "Waits for the task leaf of demo." in capsys.readouterr().out
