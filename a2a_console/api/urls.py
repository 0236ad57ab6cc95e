"""The URLs below `/api/`: resources of the management API, its OpenAPI description, and a page to read and try it."""

from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView
from rest_framework.routers import SimpleRouter

from a2a_console.api.agents import AgentViewSet
from a2a_console.api.budgets import BudgetUseViewSet, BudgetViewSet
from a2a_console.api.bulk import TaskBulkViewSet
from a2a_console.api.contexts import ContextViewSet
from a2a_console.api.keys import KeyViewSet
from a2a_console.api.runs import RunViewSet
from a2a_console.api.statistics import StatisticsViewSet
from a2a_console.api.tasks import TaskViewSet
from a2a_console.api.usage import UsageViewSet
from a2a_console.api.views import DescriptionView, NowhereView, show_docs
from a2a_console.api.waiting import TaskAnswerViewSet, WaitingViewSet
from a2a_console.api.webhooks.configs import ConfigViewSet
from a2a_console.api.webhooks.deliveries import DeliveryViewSet
from a2a_console.api.webhooks.receivers import ReceiverViewSet
from a2a_console.api.workers import WorkerViewSet
from a2a_console.site import site

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("agents", AgentViewSet, basename="agent")
router.register("tasks", TaskBulkViewSet, basename="tasks")
router.register("tasks", TaskAnswerViewSet, basename="task-answer")
router.register("tasks", TaskViewSet, basename="task")
router.register("waiting", WaitingViewSet, basename="waiting")
router.register("contexts", ContextViewSet, basename="context")
router.register("runs", RunViewSet, basename="run")
router.register("workers", WorkerViewSet, basename="worker")
router.register("budgets", BudgetViewSet, basename="budget")
router.register("budget-uses", BudgetUseViewSet, basename="budget-use")
router.register("statistics", StatisticsViewSet, basename="statistics")
router.register("usage", UsageViewSet, basename="usage")
router.register("keys", KeyViewSet, basename="key")
router.register("webhooks/configs", ConfigViewSet, basename="webhook-config")
router.register("webhooks/deliveries", DeliveryViewSet, basename="delivery")
router.register("webhooks/receivers", ReceiverViewSet, basename="receiver")

_v1: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="a2a_host:api-docs")),
    path("docs/", site.admin_view(show_docs), name="api-docs"),
    path("openapi.json", DescriptionView.as_view(), name="api-description"),
    path("", include(router.urls)),
]
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="a2a_host:api-docs")),
    path("v1/", include(_v1)),
    re_path("", NowhereView.as_view()),
]
