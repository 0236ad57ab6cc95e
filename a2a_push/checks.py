"""System checks of webhooks: `python manage.py check`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004

from a2a_push import address_guard, keys
from a2a_tasks import sealing
from a2a_tasks.agents import registry
from a2a_tasks.conf import conf
from a2a_tasks.outbound import make_tls_context

__all__ = ["check_public_url", "check_secret_keys", "check_way_out", "check_webhook_secrets"]

_LOOPBACK_IS_OPEN = Warning(
    "A2A_WEBHOOK_ALLOW_PRIVATE is set: clients can make this machine call itself by a webhook",
    hint="It is for development and conformance tests. Unset it if untrusted users have accounts.",
    id="a2a_push.W001",
)


@register()
def check_secret_keys(**_: Any) -> Iterable[CheckMessage]:
    """Report invalid keys before the first secret is sealed."""
    try:
        sealing.check_keys()
    except ValueError as fault:
        hint = 'python -c "from cryptography.fernet import Fernet as F; print(F.generate_key().decode())"'
        return [Error(str(fault), hint=f"Create one with: {hint}", id="a2a_push.E001")]
    return []


@register()
def check_webhook_secrets(**_: Any) -> Iterable[CheckMessage]:
    """Report invalid secrets before the first notification is signed."""
    try:
        keys.ring()
    except ValueError as fault:
        hint = "python -c \"import base64, os; print('whsec_' + base64.b64encode(os.urandom(32)).decode())\""
        return [Error(str(fault), hint=f"Create one with: {hint}", id="a2a_push.E004")]
    return []


@register(deploy=True)
def check_public_url(**_: Any) -> Iterable[CheckMessage]:
    """Report a missing public URL, which webhooks need: they have no request to take it from. `check --deploy`."""
    if not conf.PUBLIC_URL and any(agent.push_notifications for agent in registry.agents()):
        yield Warning(
            "A2A_PUBLIC_URL is not set: URLs of files in webhooks begin with a path, and receivers cannot open them",
            hint="Set it to the public URL of the host, such as https://agents.example.com",
            id="a2a_push.W002",
        )


@register()
def check_way_out(**_: Any) -> Iterable[CheckMessage]:
    """Report invalid settings of webhooks' addresses, and a dangerous one."""
    try:
        address_guard.guard()
        allowed = conf.WEBHOOK_ALLOW_PRIVATE
    except ValueError as fault:
        hint = "See the settings A2A_WEBHOOK_..., especially ALLOW_NETWORKS, PORTS and PROXY."
        return [
            Error(f"the settings for webhooks are invalid: {fault}", hint=hint, id="a2a_push.E002")
        ]
    found = [_LOOPBACK_IS_OPEN] if allowed else []
    try:
        make_tls_context(conf.WEBHOOK_CA_BUNDLE)
    except OSError as fault:
        text = f"A2A_WEBHOOK_CA_BUNDLE cannot be read: {fault}"
        return [Error(text, id="a2a_push.E003"), *found]
    return found
