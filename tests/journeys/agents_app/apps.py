"""Agents for the journeys, hosted by their processes only (A2A_APPS)."""

from django.apps import AppConfig


class JourneyAgentsConfig(AppConfig):
    """Agents whose inside a test can watch."""

    name = "tests.journeys.agents_app"
    label = "journey_agents"
