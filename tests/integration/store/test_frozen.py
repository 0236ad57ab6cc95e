"""A process frozen in the middle of a transaction keeps its rows from the others for a third of a lease, not for ever."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connections, transaction

from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.db import run_here
from tests.support.store.world import accepted, at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]


def test_who_freezes_in_a_transaction_is_cut_off(settings: Any) -> None:
    settings.A2A_LEASE_SECONDS = 1.0
    task = accepted("task").task
    locked, woken = threading.Event(), threading.Event()

    def freezes() -> None:
        with transaction.atomic():
            Task.objects.select_for_update().get(pk=task)
            locked.set()
            assert woken.wait(30)
            Task.objects.filter(pk=task).update(memory="written by a zombie")

    def goes_on() -> None:
        assert locked.wait(30)
        with transaction.atomic():
            Task.objects.select_for_update().get(pk=task)
        woken.set()

    def in_a_session_of_its_own() -> None:
        try:
            run_here(freezes)
        finally:
            connections.close_all()

    frozen, other = at_once(in_a_session_of_its_own, goes_on)
    assert isinstance(frozen, Overloaded)
    assert other is None
    assert Task.objects.get(pk=task).memory == ""
