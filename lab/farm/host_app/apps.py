"""The app."""

from django.apps import AppConfig

from lab.farm.host_app import names


class FarmAgents(AppConfig):
    """Agents to be followed, in a process that resolves the farm's names."""

    name = "lab.farm.host_app"
    label = "push_farm_agents"

    def ready(self) -> None:
        """Resolve from now on."""
        names.install()
