"""The Celery application: `celery -A a2a_project worker -P threads`."""

import atexit
import os
from typing import Any

from celery import Celery, signals
from celery.app.amqp import AMQP
from kombu.messaging import Consumer

from a2a_tasks import process

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")


class HintConsumer(Consumer):
    """Acknowledges nothing: a ring of the bell may be lost.

    Over Redis kombu acknowledges all the same, with a command that a full server refuses and that fails when the
    connection has just been lost; either would end the worker.
    """

    no_ack = True

    def _receive_callback(self, message: Any) -> Any:
        message.ack = message.reject = _nothing_to_say
        return super()._receive_callback(message)  # type: ignore[no-untyped-call]


def _nothing_to_say(*_: Any, **__: Any) -> None:
    pass


class Bells(AMQP):  # type: ignore[misc]
    """What the workers consume with."""

    Consumer = HintConsumer


app = Celery("a2a_project", amqp=Bells)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["a2a_tasks.execution", "a2a_push"], related_name="jobs")


@signals.celeryd_init.connect  # type: ignore[untyped-decorator]
def _on_queues(instance: Any, options: dict[str, Any], **_: Any) -> None:
    """A worker that was started without `-Q` takes from every queue that agents may name (A2A_QUEUES)."""
    from a2a_tasks.agents import registry  # noqa: PLC0415 - the apps are loaded by now

    if not options.get("queues"):
        instance.app.amqp.queues.select(registry.queues())


@signals.worker_init.connect  # type: ignore[untyped-decorator]
def _on_worker(**_: Any) -> None:
    """Workers of the queue of webhooks send them; all of them can be looked at."""
    from a2a_project import metrics_port  # noqa: PLC0415 - they need the apps, which are loaded by now
    from a2a_push import delivery, jobs  # noqa: PLC0415
    from a2a_tasks.execution import worker  # noqa: PLC0415

    worker.beside(jobs.QUEUE, delivery.begin)
    metrics_port.listen()


@signals.beat_init.connect  # type: ignore[untyped-decorator]
def _on_beat(**_: Any) -> None:
    """Beat has nothing else to wait for."""
    from a2a_tasks.execution.presence import Presence  # noqa: PLC0415 - they need the apps
    from a2a_tasks.store.workers import WorkerKind  # noqa: PLC0415

    presence = Presence(WorkerKind.BEAT)
    presence.start()
    atexit.register(presence.stop)
    process.tell_ready()
