"""The URLs that Django serves; the protocol is served without it (`asgi.py`)."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from a2a_console.admin import dashboard
from a2a_console.handover import views as handover
from a2a_console.playground import hook, new_hook
from a2a_project.favicon import favicon
from a2a_project.jwks import jwks
from a2a_project.start_page import start
from a2a_tasks.signatures.keys import JWKS_PATH

urlpatterns: list[URLPattern | URLResolver] = [
    path("", start, name="start"),
    path("favicon.ico", favicon, name="favicon"),
    path(JWKS_PATH, jwks, name="jwks"),
    path("handover/", handover.receive_secrets, name="handover"),
    path("handover/<str:token>", handover.page, name="handover_page"),
    path("playground/hooks/", new_hook, name="playground-new-hook"),
    path("playground/hooks/<str:name>", hook, name="playground-hook"),
    path("api/", include("a2a_console.api.urls")),
]
if settings.SIGN_IN_EXTRA:  # then allauth is the only way to sign in to the admin
    from allauth.account.decorators import secure_admin_login

    from a2a_project.sign_in import tables

    tables.register()
    admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
    urlpatterns.append(path("accounts/", include("a2a_project.sign_in.urls")))
urlpatterns.append(path("admin/", include(dashboard.urls())))
urlpatterns.append(path("admin/", admin.site.urls))
