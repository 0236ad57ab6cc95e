"""Permissions of the management API: denied unless the view requires a right and the operator has it."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from a2a_console.api.operators import get_operator

__all__ = ["HasRight"]


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
