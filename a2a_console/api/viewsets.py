"""The base of all viewsets of the management API: rights (denied unless the view requires one and the operator has it),
visible rows, and validation before the handler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from a2a_console.api.authentication import HostAuthentication
from a2a_console.api.exceptions import InvalidQuery, exception_handler
from a2a_console.api.operators import Operator, RequiredRight, filter_visible, get_operator
from a2a_console.api.pagination import ItemsPagination, KeyPagination
from a2a_console.api.parsers import HostJSONParser, HostJSONRenderer
from a2a_console.api.schema import HostSchema

__all__ = ["HasRight", "HostAPIView", "HostViewSet"]

CHANGES = {"POST", "PATCH"}
_M = TypeVar("_M", bound=Model)
_Serializer = type[serializers.Serializer[Any]]


class HasRight(BasePermission):
    """The operator has the right that the action requires. An action without a right is always denied."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Narrow `request.auth` to the right. Raises Unauthenticated, InsufficientScope, MissingPermission."""
        operator = get_operator(request)
        if request.method not in view.allowed_methods:
            return True  # the answer will be 405
        right = view.get_required_right()
        if right is None:
            return False
        request.auth = operator.narrow(right)
        return True


# An answer is for one operator, and may contain a credential.
@method_decorator(cache_control(no_store=True), "dispatch")
class HostAPIView(APIView):
    """A view of the management API. It is denied unless it names a required right, and never cached."""

    http_method_names = ["get", "head", "post", "patch"]
    # All by name: a project may have settings of DRF for views of its own.
    authentication_classes = [HostAuthentication]
    permission_classes = [HasRight]
    parser_classes = [HostJSONParser]
    renderer_classes = [HostJSONRenderer]
    content_negotiation_class = DefaultContentNegotiation
    metadata_class = versioning_class = None
    throttle_classes = ()
    schema: Any = HostSchema()
    #: The right for actions without a right of their own; None = they are denied.
    required_right: RequiredRight | None = None

    @property
    def operator(self) -> Operator:
        """The sender of the request, narrowed to the required right."""
        return get_operator(self.request)

    def get_exception_handler(self) -> Any:
        """Return the handler that answers all exceptions in one shape."""
        return exception_handler

    def get_required_right(self) -> RequiredRight | None:
        """Return the right that this action requires."""
        return self.required_right

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Answer JSON whatever `Accept` says: a refusal would help no client."""
        return super().perform_content_negotiation(request, force=True)


class HostViewSet(HostAPIView, GenericViewSet[_M]):
    """A viewset of rows. Rows that are not visible to the operator do not exist for it.

    Query and body are validated before the handler; unknown parameters and members are refused by name.
    """

    pagination_class: type[ItemsPagination] | None = KeyPagination
    filter_backends = ()
    lookup_url_kwarg = "key"
    lookup_value_converter = "int"
    #: Of actions that are no `@action`, by name: serializers of answers, of requests, and rights of their own.
    serializer_classes: ClassVar[Mapping[str, _Serializer]] = {}
    request_serializer_classes: ClassVar[Mapping[str, _Serializer]] = {}
    required_rights: ClassVar[Mapping[str, RequiredRight]] = {}
    #: The lookup from a row to the object that has a tenant and an agent, such as `task__`.
    visible_by: ClassVar[str] = ""
    #: The query parameters that filter, each with its lookup.
    filter_lookups: ClassVar[Mapping[str, str]] = {}
    #: True if an index leads to the rows for every query, or for those with one of these parameters (`KeyPagination`).
    indexed = False
    indexed_parameters: ClassVar[frozenset[str]] = frozenset()
    #: The serializer of the query of a GET or the body of a change; None = no parameters, no members.
    request_serializer_class: _Serializer | None = None
    #: The validated query of a GET, or the validated body of a change.
    given: dict[str, Any]

    def get_required_right(self) -> RequiredRight | None:
        """Return the right that this action requires."""
        return self.required_rights.get(self.action, self.required_right)

    def get_request_serializer_class(self) -> _Serializer | None:
        """Return the serializer of the query or the body of this action."""
        return self.request_serializer_classes.get(self.action, self.request_serializer_class)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Validate the request after the check of permissions. Raises InvalidQuery and ValidationError."""
        super().initial(request, *args, **kwargs)
        if request.method not in self.allowed_methods:
            return  # the answer will be 405
        is_change, expected = request.method in CHANGES, self.get_request_serializer_class()
        try:
            self.given = self._validate_query(None if is_change else expected)
        except serializers.ValidationError as fault:
            raise InvalidQuery(fault.detail) from None
        if is_change:
            self.given = self._validate(expected, request.data)

    def _validate_query(self, serializer_class: _Serializer | None) -> dict[str, Any]:
        """Return the parameters. Raises ValidationError, also for an unknown or repeated one."""
        fields = serializer_class().fields if serializer_class else {}
        given: dict[str, Any] = {}
        for name, values in self.request.query_params.lists():
            several = isinstance(fields.get(name), serializers.ListField)
            if len(values) > 1 and not several:
                raise serializers.ValidationError({name[:100]: "This parameter is repeated."})
            given[name] = values if several else values[0]
        return self._validate(serializer_class, given)

    def _validate(self, serializer_class: _Serializer | None, given: Any) -> dict[str, Any]:
        """Return the validated parameters or members. Raises ValidationError, also for an unknown one."""
        serializer_class = serializer_class or serializers.Serializer
        serializer = serializer_class(data=given, context=self.get_serializer_context())
        unknown = set(given) - set(serializer.fields) if isinstance(given, dict) else set()
        if unknown:
            raise serializers.ValidationError({min(unknown)[:100]: "There is no such name here."})
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def filter_queryset(self, queryset: QuerySet[_M, Any]) -> QuerySet[_M, Any]:
        """Return the rows that match all given parameters."""
        given, lookups = self.given, self.filter_lookups.items()
        return queryset.filter(**{lookup: given[name] for name, lookup in lookups if name in given})

    def get_serializer_class(self) -> Any:
        """Return the serializer of the answer of this action."""
        return self.serializer_classes.get(self.action) or super().get_serializer_class()

    def get_queryset(self) -> QuerySet[_M]:
        """Return the rows that are visible to the operator."""
        return filter_visible(self.operator, super().get_queryset(), by=self.visible_by)
