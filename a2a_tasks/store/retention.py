"""The days for which each tenant's ended tasks are kept: the host's, or the tenant's own."""

from __future__ import annotations

from django.db import transaction

from a2a_tasks.audit import Action
from a2a_tasks.models import TenantRetention
from a2a_tasks.store import audit

__all__ = ["days_of_tenants", "set_days"]


def days_of_tenants() -> dict[str, float]:
    """Return the tenants with days of their own; 0 = for ever. They do not apply to tenants below them."""
    return dict(TenantRetention.objects.order_by("tenant").values_list("tenant", "days"))


@transaction.atomic
def set_days(tenant: str, days: float | None) -> None:
    """Set the days for which a tenant's ended tasks are kept; None = the host's days. Raises ValueError."""
    if days is None:
        TenantRetention.objects.filter(tenant=tenant).delete()
    elif not 0 <= days < float("inf"):
        raise ValueError("Days must be finite, and not negative")
    else:
        TenantRetention.objects.update_or_create(tenant=tenant, defaults={"days": days})
    audit.note(Action.RETENTION_SET, tenant, tenant=tenant, detail={"days": days})
