"""Webhooks: configs and delivery."""

from django.apps import AppConfig


class PushApp(AppConfig):
    """The app of push notification configs."""

    name = "a2a_push"
    verbose_name = "A2A push notifications"

    def ready(self) -> None:
        """Have webhooks that come with messages kept beside their tasks, and go with those that succeed them."""
        from a2a_push import checks, store  # noqa: F401, PLC0415 - models, once apps are loaded; checks register
        from a2a_push.operations.inline import inline  # noqa: PLC0415 - needs the models
        from a2a_tasks.store import companions  # noqa: PLC0415

        companions.register(inline)
        companions.on_succession(store.move)
