"""Django's development server on the whole ASGI application; `manage.py up` is the host."""

from daphne.management.commands.runserver import Command

__all__ = ["Command"]
