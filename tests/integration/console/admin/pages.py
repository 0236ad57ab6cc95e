"""Every page that people see, with something on it."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse

from a2a_push.models import DeliveryStatus
from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import RunStatus, WorkerKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import run_lines, switches, workers
from a2a_tasks.store.run_lines import RunLogLine
from tests.support.console.admin.rows import add_artifact, add_run, add_status, add_step, make_task
from tests.support.push.rows import add_attempt, make_config, make_delivery, make_receiver

__all__ = ["everything", "pages"]

SCRIPT = "<script>alert(1)</script>"


def everything() -> None:
    """A row of every kind, in the states that pages show most of; what strangers wrote would run if a page let it."""
    task = make_task(SCRIPT, text=SCRIPT, owner=SCRIPT, context_id=SCRIPT)
    add_artifact(task, SCRIPT, SCRIPT, "y", closed=False)
    request = f'{{"metadata":"{SCRIPT}"}}'
    run = add_run(task, RunStatus.FAILED, error=SCRIPT, worker=SCRIPT, request=request)
    add_step(task, run, SCRIPT, f'"{SCRIPT}"')
    add_status(task, TaskState.WORKING, SCRIPT)
    receiver = make_receiver(f"https://a.example/{SCRIPT}")
    about = {"receiver": receiver, "schemes": f'["{SCRIPT}"]', "disabled_reason": "gone"}
    config = make_config(task, SCRIPT, **about)
    dead = make_delivery(config, DeliveryStatus.DEAD, body=f'"{SCRIPT}"', reason=SCRIPT)
    add_attempt(dead, excerpt=SCRIPT, detail=SCRIPT, worker=SCRIPT)
    add_attempt(make_delivery(config, DeliveryStatus.PENDING, webhook_id="msg-2"))
    issue("robot")
    run_lines.write([RunLogLine(run.pk, 1, run.created_at, 40, "agent", SCRIPT)])
    here = "<i>here</i>"
    workers.beat(
        workers.Beat(name=here, kind=WorkerKind.WORKER, host=here, pid=1, started_at=run.created_at)
    )
    switches.move("demo", "night", "<b>why not</b>")


def pages() -> list[str]:
    """The addresses: the front page, the admin's own, and of every table its list, its form, and a row's pages."""
    agent = reverse("admin:a2a_tasks_agentswitch_agent", args=["demo"])
    found = [
        "/",
        agent,
        "/admin/",
        "/admin/login/",
        "/admin/password_change/",
        "/admin/nothing/here/",
    ]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        found += [f"/admin/{model._meta.app_label}/", reverse(f"{name}_changelist")]
        found += [reverse(f"{name}_changelist") + "?q=x", reverse(f"{name}_add")]
        for row in model._default_manager.all()[:2]:
            found += [reverse(f"{name}_{page}", args=[row.pk]) for page in ("change", "history")]
            found += [reverse(f"{name}_delete", args=[row.pk])]
    return list(dict.fromkeys(found))
