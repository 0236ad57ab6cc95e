"""Webhooks registered before there were receivers get theirs, and are told of what comes from now on."""

import hashlib
from urllib.parse import urlsplit

from django.db import migrations

ENDED = (
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
)


def adopt(apps, schema_editor):
    configs = apps.get_model("a2a_push", "PushConfig").objects.select_related("task")
    receivers = apps.get_model("a2a_push", "Receiver").objects
    for config in configs.iterator():
        parts = urlsplit(config.url)
        address = f"{parts.scheme}://{parts.netloc}{parts.path}"
        digest = hashlib.sha256(f"{config.task.tenant}\n{address}".encode()).hexdigest()
        config.receiver, _ = receivers.get_or_create(
            digest=digest, defaults={"tenant": config.task.tenant, "address": address}
        )
        config.cursor = config.looked = config.task.last_event
        config.active = config.task.state not in ENDED
        config.save(update_fields=["receiver", "cursor", "looked", "active"])


class Migration(migrations.Migration):
    dependencies = [("a2a_push", "0002_delivery")]
    operations = [migrations.RunPython(adopt, migrations.RunPython.noop)]
