"""Webhooks: configs and delivery."""

from django.apps import AppConfig


class PushApp(AppConfig):
    """The Django app of webhooks."""

    name = "a2a_push"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "A2A webhooks"

    def ready(self) -> None:
        """Register the hooks of tasks, the checks, and the sealed columns."""
        from a2a_push import checks  # noqa: F401, PLC0415 - registers the checks
        from a2a_push.operations.task_hooks import WebhookHooks  # noqa: PLC0415 - needs the models
        from a2a_push.store import configs  # noqa: PLC0415
        from a2a_tasks.store import hooks, sealed_columns  # noqa: PLC0415

        hooks.register(WebhookHooks())
        sealed_columns.register(configs.SECRETS)
