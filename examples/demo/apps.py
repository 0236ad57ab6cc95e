"""The demo agents."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Agents for people, tests, conformance kits and load tools to talk to."""

    name = "examples.demo"
    label = "demo"
