"""The app."""

from django.apps import AppConfig


class LabAgents(AppConfig):
    """Agents that keep a ledger."""

    name = "lab.faultlab.agents_app"
    label = "faultlab_agents"
