"""API keys in the API: list, create, rotate, revoke. A key is in the answer that creates or
rotates it, and nowhere else.

No key has more rights than the operator who made it: a caller may give its own scopes, within its tenant, and may
rotate only keys of such scopes, because a rotation shows the new secret. The scopes of staff are their groups. Staff who see all tenants may give any scope, as in the admin.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.exceptions import Conflict
from a2a_console.api.operators import KEYS, RequiredRight
from a2a_console.api.pagination import PageQuerySerializer, moment_field
from a2a_console.api.viewsets import HostViewSet
from a2a_console.staff import covers, may_give
from a2a_console.times import MomentField
from a2a_tasks.access import api_keys
from a2a_tasks.access.passwords import scopes_of
from a2a_tasks.agents.security import is_scope
from a2a_tasks.models import ApiKey

__all__ = ["KeyViewSet"]

TO_CREATE = RequiredRight.to_change("a2a_tasks.apikey", KEYS, verb="add")
TO_CHANGE = RequiredRight.to_change("a2a_tasks.apikey", KEYS)
OVERLAP_HOURS, MAX_HOURS = 24.0, 24.0 * 366
#: The largest number of characters of the column.
MAX_SCOPES = 2_000


class KeyLineSerializer(serializers.Serializer[ApiKey]):
    """A key without its secret."""

    prefix = serializers.CharField(
        help_text="Identifies the key; its principal is `key:` and the prefix."
    )
    name = serializers.CharField(help_text="Purpose of the key.")
    tenant = serializers.CharField()
    scopes = serializers.SerializerMethodField()
    state = serializers.ChoiceField(["live", "expired", "revoked"], read_only=True)
    created_at = MomentField()
    expires_at = MomentField(allow_null=True, help_text="End of validity; null = never.")
    rotated_at = MomentField(allow_null=True)
    previous_until = MomentField(
        allow_null=True, help_text="End of the validity of the secret before the last rotation."
    )
    previous_used_at = MomentField(allow_null=True, help_text="Last use of the previous secret.")
    last_used_at = MomentField(allow_null=True, help_text="Last use of the key, to about a minute.")
    revoked_at = MomentField(allow_null=True)

    def get_scopes(self, row: ApiKey) -> list[str]:
        """The scopes of the key."""
        return row.scopes.split()


class IssuedSerializer(KeyLineSerializer):
    """A key with its secret, shown only once."""

    key = serializers.CharField(help_text="The key with its secret, which no later answer shows.")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Add the key to the stored attributes."""
        return {**KeyLineSerializer(instance.row).data, "key": instance.key}


def _validate_scope(text: str) -> None:
    if not is_scope(text):
        raise serializers.ValidationError("Letters, digits and signs of ASCII, without quotes.")


def _validate_tenant(text: str) -> None:
    if not api_keys.is_tenant(text):
        raise serializers.ValidationError("A tenant has no slashes.")


def _validate_expiry(moment: Any) -> None:
    if moment is not None and moment <= timezone.now():
        raise serializers.ValidationError("This is over.")


class NewKeySerializer(serializers.Serializer[Any]):
    """The attributes of a new key."""

    name = serializers.CharField(max_length=200, help_text="Purpose of the key.")
    tenant = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=128,
        validators=[_validate_tenant],
        help_text="The tenant of the key. Default: the operator's own tenant.",
    )
    scopes = serializers.ListField(
        child=serializers.CharField(max_length=128, validators=[_validate_scope]),
        required=False,
        max_length=100,
        help_text="Scopes that the operator has. Staff who see all tenants may give any.",
    )
    expires_at = moment_field(
        "Default: in one year. Null = never.", allow_null=True, validators=[_validate_expiry]
    )


class RotationSerializer(serializers.Serializer[Any]):
    """The options of a rotation."""

    overlap_hours = serializers.FloatField(
        required=False,
        default=OVERLAP_HOURS,
        min_value=0.0,
        max_value=MAX_HOURS,
        help_text="Hours for which the old secret stays valid.",
    )
    expires_at = moment_field("Default: the present expiry.", validators=[_validate_expiry])


class KeyViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[ApiKey]):
    """All keys, also revoked ones, newest first."""

    queryset = ApiKey.objects.all()
    serializer_class = KeyLineSerializer
    serializer_classes = {"create": IssuedSerializer}
    request_serializer_classes = {"list": PageQuerySerializer, "create": NewKeySerializer}
    lookup_field = lookup_url_kwarg = "prefix"
    lookup_value_converter = "slug"
    required_right = RequiredRight.to_view("a2a_tasks.apikey")
    required_rights = {"create": TO_CREATE}

    def create(self, request: Request) -> Response:
        """Create a key and show it, only this once."""
        given = self.given
        scopes = given.get("scopes", [])
        if len(" ".join(scopes)) > MAX_SCOPES:
            text = f"They are longer than {MAX_SCOPES} characters."
            raise serializers.ValidationError({"scopes": text})
        self.operator.check_scopes(*scopes)
        tenant: str = given.get("tenant", self.operator.tenant)
        if not self._is_own(tenant):
            raise serializers.ValidationError({"tenant": "This is not your tenant."})
        if not may_give(self.operator.tenants, self._scopes, tenant, scopes):
            text = "Such a key would have scopes, or see tenants, that you have not."
            raise serializers.ValidationError({"scopes": text})
        expires_at = given.get("expires_at", timezone.now() + api_keys.LIFE)
        issued = api_keys.issue(given["name"], tenant=tenant, scopes=scopes, expires_at=expires_at)
        return Response(self.get_serializer(issued).data, status=201)

    @action(
        detail=True,
        methods=["post"],
        required_right=TO_CHANGE,
        serializer_class=IssuedSerializer,
        request_serializer_class=RotationSerializer,
    )
    def rotate(self, request: Request, prefix: str) -> Response:
        """Give a key a new secret and show it, only this once; the old secret works until the overlap ends.

        409 for a key that was revoked or has expired. 403 (a caller) or 409 (staff) if the key has scopes that the
        operator does not have; 409 if it has rights or tenants that the operator does not have.
        """
        row = self.get_object()
        self.operator.check_scopes(*row.scopes.split())
        if not may_give(self.operator.tenants, self._scopes, row.tenant, api_keys.powers(row)):
            raise Conflict("The key has scopes or rights, or sees tenants, that you have not")
        given = self.given
        overlap = timedelta(hours=given["overlap_hours"])
        try:
            issued = api_keys.rotate(row.prefix, overlap, given.get("expires_at"))
        except ValueError:
            raise Conflict("The key was revoked, or has expired") from None
        return Response(self.get_serializer(issued).data)

    @action(detail=True, methods=["post"], required_right=TO_CHANGE)
    def revoke(self, request: Request, prefix: str) -> Response:
        """Revoke a key for good. It may still work for `A2A_CREDENTIAL_SECONDS`.

        409 if it was revoked before.
        """
        if not api_keys.revoke(self.get_object().prefix):
            raise Conflict("The key was revoked before")
        return self.retrieve(request)

    @property
    def _scopes(self) -> frozenset[str]:
        person = self.operator.person
        return self.operator.scopes if person is None else scopes_of(person)

    def _is_own(self, tenant: str) -> bool:
        if self.operator.tenant:
            return tenant == self.operator.tenant
        return covers(self.operator.tenants, tenant)
