"""Any sequence of registrations, replacements, deletions and successions, against a model that is a dictionary."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import TransactionTestCase, override_settings
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from a2a_push.store import configs
from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound
from a2a_tasks.protocol.values import PushConfig
from a2a_tasks.store import sealed_columns
from tests.support.push.configs import config, page, tells_none
from tests.support.store.world import ALICE, BOB, accepted
from tests.support.thorough import examples

MAX_COUNT = 3
TASKS = st.sampled_from(["task-1", "task-2"])
NAMES = st.sampled_from(["task-1", "task-2", "a", "b", "c"])


class Webhooks(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        #: Of each task, its webhooks in the order of their making.
        self.model: dict[str, dict[str, PushConfig]] = {"task-1": {}, "task-2": {}}
        #: When each (task, id) was made.
        self.made: dict[str, dict[str, int]] = {"task-1": {}, "task-2": {}}
        self.count = 0
        self.keys: dict[str, int] = {}

    @initialize()
    def empty(self) -> None:
        Task.objects.all().delete()
        self.keys = {name: accepted(name).task for name in self.model}

    @rule(task=TASKS, name=NAMES, token=st.text(max_size=3), secret=st.booleans())
    def a_client_registers(self, task: str, name: str, token: str, secret: bool) -> None:
        more: dict[str, Any] = {} if secret else {"credentials": "", "headers": {}}
        asked = config(name, task_id=task, token=token, **more)
        mine = self.model[task]
        if name not in mine and len(mine) >= MAX_COUNT:
            with pytest.raises(InvalidParams):
                configs.create(ALICE, asked)
            return
        tells_none(configs.create(ALICE, asked))
        self.count += 1
        mine[name] = asked
        self.made[task].setdefault(name, self.count)

    @rule(task=TASKS, name=NAMES)
    def a_client_deletes(self, task: str, name: str) -> None:
        configs.delete(ALICE, task, name)
        self.model[task].pop(name, None)
        self.made[task].pop(name, None)

    @rule(old=TASKS, new=TASKS)
    def a_task_succeeds_another(self, old: str, new: str) -> None:
        if old == new or len(self.model[old].keys() | self.model[new].keys()) > MAX_COUNT:
            return
        configs.move(self.keys[old], self.keys[new])
        for name, moved in self.model[old].items():
            if name not in self.model[new]:
                self.model[new][name] = config(
                    name,
                    task_id=new,
                    token=moved.token,
                    credentials=moved.credentials,
                    headers=moved.headers,
                )
                self.made[new][name] = self.made[old][name]
        self.model[old], self.made[old] = {}, {}

    @rule()
    def an_operator_reseals(self) -> None:
        sealed_columns.reseal(configs.SECRETS)

    @rule(task=TASKS, name=NAMES)
    def bob_asks(self, task: str, name: str) -> None:
        for ask in (configs.get, configs.delete):
            with pytest.raises(TaskNotFound):
                ask(BOB, task, name)

    def ordered(self, task: str) -> list[str]:
        return sorted(self.model[task], key=self.made[task].__getitem__)

    @invariant()
    def what_is_kept_is_what_was_said(self) -> None:
        for task, key in self.keys.items():
            kept = [found for _, found in configs.with_secrets(key)]
            assert kept == [self.model[task][name] for name in self.ordered(task)]

    @invariant()
    def pages_show_each_once(self) -> None:
        for task in self.keys:
            shown, token = [], ""
            while True:
                found = page(task, page_size=2, page_token=token)
                shown += [each.id for each in found.configs]
                if not (token := found.next_page_token):
                    break
            assert shown == self.ordered(task)

    @invariant()
    def each_is_found_by_its_id_and_one_without(self) -> None:
        for task in self.keys:
            names = self.ordered(task)
            assert [configs.get(ALICE, task, name).id for name in names] == names
            if names:
                assert configs.get(ALICE, task).id == (task if task in names else names[0])


class TestWebhooks(TransactionTestCase):
    @override_settings(A2A_MAX_PUSH_CONFIGS=MAX_COUNT)
    def test_any_sequence(self) -> None:
        run_state_machine_as_test(
            Webhooks,
            settings=settings(
                max_examples=examples(30, quick=6),
                stateful_step_count=15,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
