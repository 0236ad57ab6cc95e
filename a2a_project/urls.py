"""URLs that Django serves; the protocol is served beside Django (`asgi.py`)."""

from django.contrib import admin
from django.urls import path

from a2a_project.start_page import start

urlpatterns = [
    path("", start, name="start"),
    path("admin/", admin.site.urls),
]
