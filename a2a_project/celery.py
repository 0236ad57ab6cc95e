"""The Celery application: `celery -A a2a_project worker -P threads`."""

import atexit
import os
from typing import Any

import django
from celery import signals
from celery.app.amqp import AMQP
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from kombu.messaging import Consumer


@signals.import_modules.connect  # type: ignore[untyped-decorator]
def _on_loading(**_: Any) -> None:
    """Set Django up before Celery's own handler does, and report mistakes in agents in one line."""
    try:
        django.setup()
    except ImproperlyConfigured as fault:
        raise SystemExit(f"The host cannot start. {fault}") from None


# Set before the application is made: Celery then prepares it for Django, with a handler that runs after the one above,
# and keeps the working directory in the path.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")

from a2a_project import celery_log  # noqa: E402 - see above
from a2a_tasks.execution.celery_app import app  # noqa: E402


def _load_settings() -> None:
    """Load the settings, and report a mistake in the environment in one line. Celery's own commands print a trace."""
    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as fault:
        raise SystemExit(f"The environment is wrong. {fault}") from None


class HintConsumer(Consumer):
    """A consumer without acknowledgements: a hint may be lost.

    Over Redis kombu acknowledges anyway, with a command that a full server refuses and that fails when the connection
    has just been lost; either would end the worker.
    """

    no_ack = True

    def _receive_callback(self, message: Any) -> Any:
        message.ack = message.reject = _ignore
        return super()._receive_callback(message)  # type: ignore[no-untyped-call]


def _ignore(*_: Any, **__: Any) -> None:
    pass


class HintAmqp(AMQP):  # type: ignore[misc]
    """The AMQP settings of the workers."""

    Consumer = HintConsumer


_load_settings()
celery_log.set_up()
app.amqp_cls = HintAmqp
app.set_current()
app.autodiscover_tasks(["a2a_tasks.execution", "a2a_push"], related_name="jobs")


def _refuse_unusable_database() -> None:
    from a2a_tasks.management.database import refuse_unusable_database  # noqa: PLC0415 - it needs settings

    try:
        refuse_unusable_database()
    except CommandError as fault:
        raise SystemExit(str(fault)) from None


@signals.celeryd_init.connect  # type: ignore[untyped-decorator]
def _on_queues(instance: Any, options: dict[str, Any], **_: Any) -> None:
    """Let a worker without `-Q` take from every queue that agents may name (A2A_QUEUES)."""
    from a2a_tasks.agents import registry  # noqa: PLC0415 - the apps are loaded by now

    if not options.get("queues"):
        instance.app.amqp.queues.select(registry.queues())


@signals.worker_init.connect  # type: ignore[untyped-decorator]
def _on_worker(**_: Any) -> None:
    """Start the parts of a worker: webhooks for workers of their queue, and metrics. Refuse to start without tables."""
    _refuse_unusable_database()
    from a2a_project import metrics_port  # noqa: PLC0415 - they need the apps, which are loaded by now
    from a2a_push import delivery, jobs  # noqa: PLC0415
    from a2a_tasks.agents.declaration import UnfitManifest  # noqa: PLC0415
    from a2a_tasks.conf import conf  # noqa: PLC0415
    from a2a_tasks.execution import announcement, worker  # noqa: PLC0415
    from a2a_tasks.telemetry.provider import start_provider  # noqa: PLC0415

    if conf.ENVIRONMENT:
        try:
            announcement.announce_agents()
        except UnfitManifest as fault:
            raise SystemExit(f"The agents of this environment are refused: {fault}") from None
    start_provider()
    worker.run_in_background(jobs.QUEUE, delivery.begin)
    metrics_port.listen()


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _on_ready(**_: Any) -> None:
    from a2a_tasks.execution import watchdog  # noqa: PLC0415 - it needs settings

    watchdog.start()


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _on_shutting_down(**_: Any) -> None:
    """Begin the drain, and end the purge after its batch: the worker waits for its jobs."""
    from a2a_tasks.execution import jobs, worker  # noqa: PLC0415 - they need the apps

    jobs.ending.set()
    worker.begin_drain()


@signals.beat_init.connect  # type: ignore[untyped-decorator]
def _on_beat(**_: Any) -> None:
    """List beat among the workers. Refuse to start without tables. Each job that it sends touches the heartbeat file."""
    _refuse_unusable_database()
    from a2a_tasks.execution import heartbeat  # noqa: PLC0415 - they need the apps
    from a2a_tasks.execution.presence import Presence  # noqa: PLC0415
    from a2a_tasks.store.workers import WorkerKind  # noqa: PLC0415

    signals.after_task_publish.connect(lambda **_: heartbeat.touch(), weak=False)
    heartbeat.touch()
    presence = Presence(WorkerKind.BEAT)
    presence.start()
    atexit.register(presence.stop)
