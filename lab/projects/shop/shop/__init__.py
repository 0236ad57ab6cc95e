"""A project with much of its own: users, admin site, settings of DRF, templates, Celery."""

from shop.celery import app

__all__ = ["app"]
