"""Webhooks: configs and delivery."""

from django.apps import AppConfig


class PushConfig(AppConfig):
    """The app of push notification configs."""

    name = "a2a_push"
    verbose_name = "A2A push notifications"
