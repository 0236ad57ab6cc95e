"""The host in a Django project: three calls, in its settings, its `asgi.py` and its `urls.py`.

import a2a_host
a2a_host.install(globals(), prefix="/a2a")              # at the end of settings.py; apps with agents may follow
application = a2a_host.asgi(get_asgi_application())     # in asgi.py
urlpatterns += a2a_host.urls()                          # in urls.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a_host.installation import install

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.urls import URLPattern, URLResolver

__all__ = ["asgi", "install", "urls"]


def asgi(application: Any) -> Any:
    """Return the ASGI application of host and project. `application` is the project's, and gets all other paths.

    Its lifespan is the host's: the project's application gets no events of it.
    """
    from a2a_project.routing import Routes, make_application  # noqa: PLC0415 - it needs the apps

    return make_application(Routes(application))


def urls(admin_site: AdminSite | None = None) -> list[URLPattern | URLResolver]:
    """Return the patterns of the host's pages: start page, console, management API.

    `admin_site` is the project's own site, if it is not Django's default: it decides who may use the console.
    """
    from a2a_project.urls import make_urls  # noqa: PLC0415 - it needs the apps

    return make_urls(admin_site)
