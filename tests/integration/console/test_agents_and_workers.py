"""`manage.py a2a agents` and `workers`: the lines they write, and what they set."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from types import ModuleType

import pytest
from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.access import switched
from a2a_tasks.management.console import agents, workers
from a2a_tasks.models import AuditEntry, RunStatus
from a2a_tasks.store import switches
from tests.integration.store.test_workers import beat, silent
from tests.support.admin.rows import add_run, make_task

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def unswitched() -> Iterator[None]:
    """Nothing stays switched."""
    switched.forget()
    yield
    switched.forget()


def said(module: ModuleType, *words: str) -> str:
    """What a subcommand writes."""
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    out = io.StringIO()
    module.handle(BaseCommand(stdout=out), vars(parser.parse_args(words)))
    return out.getvalue()


class TestWorkers:
    def test_are_listed_with_how_each_stands(self) -> None:
        beat("a:1", running=2)
        beat("b:2", queues=["night"])
        silent("b:2", 60)
        first, second = said(workers).splitlines()
        assert first.startswith("a:1  alive  worker  agents  2 of 10 runs  -  seen ")
        assert second.startswith("b:2  dead  worker  night")
        assert said(workers, "--queue", "night") == ""
        assert "a:1" in said(workers, "--queue", "agents")

    def test_with_what_each_holds(self) -> None:
        beat()
        run = add_run(make_task("held"), RunStatus.RUNNING, worker="here:1")
        assert f"run {run.pk} of demo: task held" in said(workers, "--runs")


class TestAgents:
    def test_are_listed_with_what_they_have_to_do(self) -> None:
        add_run(make_task("one"))
        beat()
        (line,) = said(agents, "list", "demo").splitlines()
        assert line == (
            "demo  on  1.0.0  queue agents  workers 1  running 0  queued 1  last hour 0 ended  0 failed"
        )
        assert len(said(agents).splitlines()) > 1

    def test_are_switched(self) -> None:
        assert said(agents, "drain", "demo", "--reason", "deploy") == "Done.\n"
        assert said(agents, "drain", "demo") == "It was so already.\n"
        assert "demo  draining" in said(agents)
        said(agents, "limit", "demo", "3")
        said(agents, "queue", "demo", "night")
        row = switches.row_of("demo")
        assert (row.state, row.max_running, row.queue) == ("draining", 3, "night")
        said(agents, "limit", "demo", "none")
        said(agents, "queue", "demo", "own")
        said(agents, "enable", "demo")
        row = switches.row_of("demo")
        assert (row.state, row.max_running, row.queue) == ("on", None, "")
        said(agents, "disable", "demo")
        assert AuditEntry.objects.filter(action="agent.disable", object="demo").exists()

    @pytest.mark.parametrize(
        "words",
        [
            ("drain", "gone"),
            ("drain",),
            ("limit", "demo"),
            ("limit", "demo", "x"),
            ("queue", "demo", "a b"),
        ],
    )
    def test_nonsense_is_refused(self, words: tuple[str, ...]) -> None:
        with pytest.raises(CommandError):
            said(agents, *words)
