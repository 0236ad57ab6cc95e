"""Agents for the campaign, hosted by its processes only (A2A_APPS)."""

from django.apps import AppConfig


class MetricsAgentsConfig(AppConfig):
    """Agents that spend, crash and hold their worker."""

    name = "lab.metrics.agents_app"
    label = "metrics_agents"
