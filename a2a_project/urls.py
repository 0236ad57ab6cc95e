"""URLs that Django serves; the protocol is served beside Django (`asgi.py`)."""

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
