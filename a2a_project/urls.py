"""URLs that Django serves; the protocol is served beside Django (`asgi.py`)."""

from django.contrib import admin
from django.urls import include, path

from a2a_project.jwks import jwks
from a2a_project.start_page import start
from a2a_tasks.signatures.keys import JWKS_PATH

urlpatterns = [
    path("", start, name="start"),
    path(JWKS_PATH, jwks, name="jwks"),
    path("admin/", admin.site.urls),
    path("api/", include("a2a_project.management_api")),
]
