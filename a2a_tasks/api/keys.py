"""API keys: listed, made, rotated, revoked. A key is in the answer that makes it, and nowhere else.

Nobody passes on by a key what they have not: a caller gives the scopes that it has, within its tenant, and rotates, which
shows the new secret, only keys of such scopes. So do staff, whose groups are their scopes; those who see all tenants
give any, as in the admin.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.access import api_keys
from a2a_tasks.access.passwords import scopes_of
from a2a_tasks.admin.staff import covers, may_give
from a2a_tasks.agents.security import is_scope
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import KEYS, Operator, Right, operator_of, there_for
from a2a_tasks.api.paging import PageQuery, moment_field, page, page_of
from a2a_tasks.api.problems import Conflict, NotFound, wrong
from a2a_tasks.models import ApiKey

__all__ = ["KeyList", "KeyOne", "KeyRevoke", "KeyRotate"]

TO_VIEW = Right.to_view("a2a_tasks.apikey")
TO_MAKE = Right.to_change("a2a_tasks.apikey", KEYS, verb="add")
TO_CHANGE = Right.to_change("a2a_tasks.apikey", KEYS)
OVERLAP_HOURS, MOST_HOURS = 24.0, 24.0 * 366
#: Characters of the column.
MOST_SCOPES = 2_000


class KeyLineSerializer(serializers.ModelSerializer[ApiKey]):
    """What is known of a key; nothing of its secret."""

    prefix = serializers.CharField(help_text="Names it; its principal is `key:` and the prefix.")
    name = serializers.CharField(help_text="What it is for.")
    tenant = serializers.CharField()
    scopes = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Null: never.")
    rotated_at = serializers.DateTimeField(allow_null=True)
    previous_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then the secret before the last rotation goes on."
    )
    previous_used_at = serializers.DateTimeField(
        allow_null=True, help_text="When that one was used last."
    )
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To about a minute.")
    revoked_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        model = ApiKey
        fields: tuple[str, ...] = (
            *("prefix", "name", "tenant", "scopes", "state", "created_at", "expires_at"),
            *("rotated_at", "previous_until", "previous_used_at", "last_used_at", "revoked_at"),
        )

    def get_scopes(self, row: ApiKey) -> list[str]:
        """Its scopes."""
        return row.scopes.split()

    @extend_schema_field(serializers.ChoiceField(["live", "expired", "revoked"]))
    def get_state(self, row: ApiKey) -> str:
        """Whether it opens: `live`, `expired` or `revoked`."""
        if row.revoked_at:
            return "revoked"
        return "expired" if row.expires_at and row.expires_at <= timezone.now() else "live"


class IssuedSerializer(KeyLineSerializer):
    """A key, this once."""

    key = serializers.CharField(help_text="The key. It is shown this once.")

    class Meta(KeyLineSerializer.Meta):
        fields = (*KeyLineSerializer.Meta.fields, "key")


def _can_be_scope(text: str) -> None:
    if not is_scope(text):
        raise serializers.ValidationError("Letters, digits and signs of ASCII, without quotes.")


def _can_be_tenant(text: str) -> None:
    if not api_keys.is_tenant(text):
        raise serializers.ValidationError("A tenant has no slashes.")


def _is_ahead(moment: Any) -> None:
    if moment is not None and moment <= timezone.now():
        raise serializers.ValidationError("This is over.")


class NewKey(serializers.Serializer[Any]):
    """What a key is to be."""

    name = serializers.CharField(max_length=200, help_text="What it is for.")
    tenant = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=128,
        validators=[_can_be_tenant],
        help_text="The operator's own if not said.",
    )
    scopes = serializers.ListField(
        child=serializers.CharField(max_length=128, validators=[_can_be_scope]),
        required=False,
        max_length=100,
        help_text="Those that the operator has; staff that sees all tenants gives any.",
    )
    expires_at = moment_field(
        "In a year if not said; null: never.", allow_null=True, validators=[_is_ahead]
    )


class Rotation(serializers.Serializer[Any]):
    """How a key is rotated."""

    overlap_hours = serializers.FloatField(
        required=False,
        default=OVERLAP_HOURS,
        min_value=0.0,
        max_value=MOST_HOURS,
        help_text="For which the old secret goes on.",
    )
    expires_at = moment_field("The key's new end; the old one if not said.", validators=[_is_ahead])


class KeyList(View):
    """Keys."""

    @action("list_keys", TO_VIEW, page_of(KeyLineSerializer), query=PageQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List the keys there ever were, newest first."""
        return Response(page_of(KeyLineSerializer)(page(_rows(request), asked)).data)

    @action("create_key", TO_MAKE, IssuedSerializer, body=NewKey, status=201)
    def post(self, request: Request, asked: Asked) -> Response:
        """Make a key, and show it, this once."""
        operator = operator_of(request)
        scopes = asked.get("scopes", [])
        if len(" ".join(scopes)) > MOST_SCOPES:
            raise wrong("body", "scopes", f"They are longer than {MOST_SCOPES} characters.")
        operator.check_scopes(*scopes)
        tenant = _tenant(operator, asked)
        if not may_give(operator.tenants, _held(operator), tenant, scopes):
            text = "Such a key would have scopes, or see tenants, that you have not."
            raise wrong("body", "scopes", text)
        issued = api_keys.issue(
            asked["name"],
            tenant=tenant,
            scopes=scopes,
            expires_at=asked.get("expires_at", timezone.now() + api_keys.LIFE),
        )
        return Response(_shown_once(issued), status=201)


class KeyOne(View):
    """One key."""

    @action("get_key", TO_VIEW, KeyLineSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, prefix: str) -> Response:
        """Show what is known of a key."""
        return Response(KeyLineSerializer(_find(request, prefix)).data)


class KeyRotate(View):
    """Rotating one."""

    @action("rotate_key", TO_CHANGE, IssuedSerializer, body=Rotation, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, prefix: str) -> Response:
        """Give a key a new secret, and show it, this once; the old one goes on for the overlap.

        409 for a key that was revoked, has expired, or has scopes or sees tenants that you have not.
        """
        row, operator = _find(request, prefix), operator_of(request)
        scopes = row.scopes.split()
        operator.check_scopes(*scopes)
        if not may_give(operator.tenants, _held(operator), row.tenant, api_keys.powers(row)):
            raise Conflict("The key has scopes or rights, or sees tenants, that you have not")
        overlap = timedelta(hours=asked["overlap_hours"])
        try:
            issued = api_keys.rotate(row.prefix, overlap, asked.get("expires_at"))
        except ValueError:
            raise Conflict("The key was revoked, or has expired") from None
        return Response(_shown_once(issued))


class KeyRevoke(View):
    """Revoking one."""

    @action("revoke_key", TO_CHANGE, KeyLineSerializer, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, prefix: str) -> Response:
        """End a key for good. It may open for `A2A_CREDENTIAL_SECONDS` yet.

        409 if it was revoked before.
        """
        row = _find(request, prefix)
        if not api_keys.revoke(row.prefix):
            raise Conflict("The key was revoked before")
        return Response(KeyLineSerializer(_find(request, prefix)).data)


def _rows(request: Request) -> QuerySet[ApiKey]:
    return there_for(operator_of(request), ApiKey.objects.all())


def _find(request: Request, prefix: str) -> ApiKey:
    row = _rows(request).filter(prefix=prefix).first()
    if row is None:
        raise NotFound
    return row


def _held(operator: Operator) -> frozenset[str]:
    return operator.scopes if operator.person is None else scopes_of(operator.person)


def _tenant(operator: Operator, asked: Asked) -> str:
    """The tenant of a new key. Raises Invalid for one that is not the operator's."""
    tenant: str = asked.get("tenant", operator.tenant)
    mine = tenant == operator.tenant if operator.tenant else covers(operator.tenants, tenant)
    if not mine:
        raise wrong("body", "tenant", "This is not your tenant.")
    return tenant


def _shown_once(issued: api_keys.Issued) -> dict[str, Any]:
    return {**KeyLineSerializer(issued.row).data, "key": issued.key}
