"""Webhooks: configs and delivery."""

from django.apps import AppConfig


class PushApp(AppConfig):
    """The app of push notification configs."""

    name = "a2a_push"
    verbose_name = "A2A webhooks"

    def ready(self) -> None:
        """Have webhooks kept beside the tasks of messages they come with, go with those that succeed them, and outlast no task."""
        from a2a_push import checks  # noqa: F401, PLC0415 - they register
        from a2a_push.operations.inline import inline  # noqa: PLC0415 - needs the models
        from a2a_push.store import configs, past, success, telling, trouble  # noqa: PLC0415
        from a2a_tasks.store import companions, figures, marks, sealed_columns  # noqa: PLC0415

        companions.register(inline)
        companions.on_succession(configs.move)
        companions.on_purge(past.untold, past.forget)
        companions.on_export("webhooks", telling.webhooks)
        companions.on_export("deliveries", telling.deliveries)
        figures.also(success.webhooks)
        marks.register(trouble.WEBHOOKS)
        sealed_columns.register(configs.SECRETS)
