"""The shop's ASGI application."""

from django.core.asgi import get_asgi_application

from shop.variables import WITH_A2A

application = get_asgi_application()

if WITH_A2A:
    import a2a_host

    application = a2a_host.asgi(application)
