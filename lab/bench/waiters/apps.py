"""The app that holds the agents."""

from django.apps import AppConfig


class WaitersConfig(AppConfig):
    """Agents that only wait."""

    name = "lab.bench.waiters"
