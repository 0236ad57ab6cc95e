"""Child processes: they are on the database of this run, they are waited for, and they end."""

from __future__ import annotations

import pytest
from django.db import connection

from a2a_tasks.execution.celery_app import app
from tests.support.processes import Child, python

PRINT_DATABASE = (
    "import django; django.setup(); from django.db import connection as c; "
    "print('database', c.settings_dict['NAME'], flush=True)"
)


class TestChild:
    @pytest.mark.django_db
    def test_sees_the_test_database_under_the_real_settings(self) -> None:
        with python(["-c", PRINT_DATABASE]) as child:
            child.wait_for(f"database {connection.settings_dict['NAME']}")

    def test_reports_what_it_said_when_it_ends_without_the_awaited_line(self) -> None:
        with (
            python(["-c", "print('sorry')"]) as child,
            pytest.raises(AssertionError, match=r"(?s)did not say 'ready'.*sorry"),
        ):
            child.wait_for("ready")

    def test_is_stopped_with_the_block(self) -> None:
        with python(["-c", "print('up', flush=True); import time; time.sleep(600)"]) as child:
            child.wait_for("up")
        assert child.process.returncode == -15


@pytest.mark.thorough
@pytest.mark.backend("stack")
class TestWorker:
    def test_answers_on_the_broker_of_this_run(self, worker: Child) -> None:
        with app.connection_for_write() as broker:
            answers = app.control.ping(timeout=10, limit=1, connection=broker)
        assert [name.split("@")[0] for answer in answers for name in answer] == ["worker1"]
