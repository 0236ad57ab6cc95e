"""The host's Celery application. Its settings are `A2A_CELERY_*`, since a project may have an application of its own."""

from __future__ import annotations

from typing import Any

from celery import Celery

from a2a_tasks.conf import project

__all__ = ["app"]

#: The recurring jobs, called by beat.
SCHEDULE = {
    "rescue": {"task": "a2a_tasks.execution.jobs.rescue_lost_runs", "schedule": 5.0},
    "waits": {
        "task": "a2a_tasks.execution.jobs.look_at_all_waits",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "purge": {
        "task": "a2a_tasks.execution.jobs.purge_old_tasks",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "webhooks": {
        "task": "a2a_push.jobs.sweep_webhooks",
        "schedule": 60.0,
        "options": {"queue": "webhooks", "expires": 60.0},
    },
}
#: Timeouts in seconds, longer than the second that a worker waits for a message; without them, a silent Redis would block
#: it for ever.
REDIS_OPTIONS = {
    "socket_timeout": 3.0,
    "socket_connect_timeout": 2.0,
    "socket_keepalive": True,
    "health_check_interval": 3,
}


def _make_defaults() -> dict[str, Any]:
    by_redis = str(project.A2A_CELERY_BROKER_URL).startswith(("redis", "valkey"))
    return {
        "timezone": "UTC",
        "task_ignore_result": True,
        "task_default_queue": "agents",
        "beat_schedule": SCHEDULE,
        # seconds that beat sleeps at most: when its clock is set back, it goes on soon after that is corrected
        "beat_max_loop_interval": 5,
        "broker_connection_retry_on_startup": True,
        # None = for ever: after the 100 tries of the default, 45 minutes, a worker would end, and its runs with it
        "broker_connection_max_retries": None,
        # seconds, for RabbitMQ's connections: a dead one is noticed after twice as long
        "broker_heartbeat": 10,
        # errors of a full Redis must not end a worker
        "broker_channel_error_retry": True,
        "broker_transport_options": REDIS_OPTIONS if by_redis else {},
    }


app = Celery("a2a_project", set_as_current=False)
app.add_defaults(_make_defaults)
app.config_from_object("django.conf:settings", namespace="A2A_CELERY")
