"""For how long the tasks of each tenant are kept: the host's days, or the tenant's own."""

from __future__ import annotations

from django.db import transaction

from a2a_tasks.audit import Action
from a2a_tasks.models import TenantRetention
from a2a_tasks.store import audit

__all__ = ["days_of_tenants", "set_days"]


def days_of_tenants() -> dict[str, float]:
    """Tenants with days of their own; 0 = for ever. What is below a tenant has its own, or the host's."""
    return dict(TenantRetention.objects.order_by("tenant").values_list("tenant", "days"))


@transaction.atomic
def set_days(tenant: str, days: float | None) -> None:
    """Keep a tenant's tasks so long after their end; None = as long as the host says. Raises ValueError."""
    if days is None:
        TenantRetention.objects.filter(tenant=tenant).delete()
    elif not 0 <= days < float("inf"):
        raise ValueError("Days must not be negative, and finite")
    else:
        TenantRetention.objects.update_or_create(tenant=tenant, defaults={"days": days})
    audit.note(Action.RETENTION_SET, tenant, tenant=tenant, detail={"days": days})
