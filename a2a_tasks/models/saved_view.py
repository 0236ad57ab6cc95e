"""Views of the list of tasks that users have saved for themselves."""

from __future__ import annotations

from django.conf import settings
from django.db import models

__all__ = ["SavedView"]


class SavedView(models.Model):
    """The filters and columns of a list under a name."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(max_length=60)
    #: The query of the address.
    query = models.CharField(max_length=2000, blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="one_view_of_a_user_per_name")
        ]

    def __str__(self) -> str:
        return self.name
