"""The ASGI entry point of the host's own project."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()  # sets Django up; the import below needs the apps

from a2a_project.routing import Routes, make_application  # noqa: E402

routes = Routes(django_application)
application = make_application(routes)
