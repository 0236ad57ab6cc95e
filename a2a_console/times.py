"""Durations and moments as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone
from rest_framework import ISO_8601, serializers

__all__ = ["MomentField", "duration", "moment", "took"]


class MomentField(serializers.DateTimeField):
    """A moment in UTC, in the form of RFC 3339, whatever the settings of the project are."""

    format = ISO_8601
    timezone = UTC


def duration(span: timedelta) -> str:
    """Return the span in its two largest units: `3 h 5 min`."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:  # noqa: PLR2004 - below that, fractions matter
        return f"{seconds:.1f} s"
    left, words = int(seconds), []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words[:2])


def took(seconds: float) -> str:
    """Return a number of seconds as text."""
    return duration(timedelta(seconds=seconds))


def moment(at: datetime | None) -> str:
    """Return the moment to the second, so that it can be compared with logs."""
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S") if at else ""
