"""The shop's URLs: its back office, its API."""

from django.urls import path
from rest_framework.decorators import api_view
from rest_framework.response import Response

from shop.admin import office
from shop.variables import WITH_A2A


@api_view(["GET"])
def tasks(request):
    """Say what the shop has to do."""
    return Response({"tasks": ["sweep"]})


urlpatterns = [path("office/", office.urls), path("api/tasks", tasks, name="task-list")]

if WITH_A2A:
    import a2a_host

    urlpatterns += a2a_host.urls(office)
