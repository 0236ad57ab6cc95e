"""The Celery application: `celery -A a2a_project worker -P threads`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")

app = Celery("a2a_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["a2a_tasks.execution"], related_name="jobs")
