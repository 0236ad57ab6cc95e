"""System checks of webhooks: `python manage.py check`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register

from a2a_push import sealing

__all__ = ["check_secret_keys"]


@register()
def check_secret_keys(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """Keys that are none, before the first secret is to be sealed."""
    try:
        sealing.check_keys()
    except ValueError as fault:
        hint = 'python -c "from cryptography.fernet import Fernet as F; print(F.generate_key().decode())"'
        return [Error(str(fault), hint=f"Make one: {hint}", id="a2a_push.E001")]
    return []
