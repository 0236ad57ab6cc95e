"""Sample events: an operator asks what a receiver answers. There is no task, and no row but an audit entry (decision 50)."""

from __future__ import annotations

import secrets

from asgiref.sync import async_to_sync

from a2a_push import keys
from a2a_push.envelope import PreparedRequest, notification, prepare
from a2a_push.models import PushConfig, Receiver
from a2a_push.sender import AttemptRefused, Outcome, Sender
from a2a_push.store.configs import to_value, unseal_secrets
from a2a_tasks.audit import Action
from a2a_tasks.outbound import FaultKind
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent
from a2a_tasks.protocol.values import Raw, Role, Task, TaskState, TaskStatus
from a2a_tasks.sealing import Unsealable
from a2a_tasks.store import audit, clock
from a2a_tasks.store.event_log import status_body

__all__ = ["MARK", "TEXT", "send_sample"]

#: The member that marks a sample in the metadata of its message, and the text of the message.
MARK = "urn:a2a-host:test-event"
TEXT = "A test event of the host, about no task."


def send_sample(receiver: Receiver) -> Outcome | None:
    """Send the status of no task once, as the newest webhook there would get it; None = no webhook leads there.

    The address guard applies, and no breaker, no retry and no statistic. An audit entry has the result.
    """
    webhooks = PushConfig.objects.filter(receiver=receiver).select_related("task")
    config = webhooks.order_by("-pk").first()
    if config is None:
        return None
    try:
        outcome = async_to_sync(_send)(_prepare(config))
    except Unsealable:
        detail = "no key of this host opens the webhook's secrets"
        outcome = AttemptRefused(FaultKind.HOST, None, 0.0, "", None, detail)
    fault = str(outcome.kind) if isinstance(outcome, AttemptRefused) else ""
    about = {"status": outcome.status, "fault": fault, "seconds": round(outcome.seconds, 3)}
    audit.note(Action.RECEIVER_TEST, str(receiver.pk), tenant=receiver.tenant, detail=about)
    return outcome


def _prepare(config: PushConfig) -> PreparedRequest:
    """Return the signed request. Raises Unsealable."""
    name, at, working = f"test-{secrets.token_hex(12)}", clock.now(), TaskState.WORKING
    said = {"messageId": name, "role": Role.AGENT.value, "parts": [{"text": TEXT}]}
    message = write(said | {"metadata": {MARK: True}})
    event = LogEvent(
        number=1,
        kind=EventKind.STATUS,
        body=status_body(working, at, message.decode()),
        state=working,
    )
    status = TaskStatus(state=working, message=Raw(message), timestamp=rfc3339(at))
    task = Task(id=name, context_id=name, status=status)
    return prepare(
        notification(f"msg_{name}", config.dialect, [event], task),
        unseal_secrets(to_value(config, name), config.secret),
        keys.ring(),
        tenant=config.task.tenant,
        issuer=keys.issuer(),
        now=at.timestamp(),
    )


async def _send(request: PreparedRequest) -> Outcome:
    sender = Sender()
    try:
        return await sender.send(request)
    finally:
        await sender.close()
