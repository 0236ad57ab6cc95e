"""The project: settings, the table of operations, URLs, ASGI and Celery entry points."""

__version__ = "0.1.0"
