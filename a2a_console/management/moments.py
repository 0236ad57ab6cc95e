"""Moments on a command line."""

from __future__ import annotations

import datetime
from argparse import ArgumentTypeError

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

__all__ = ["moment"]


def moment(text: str) -> datetime.datetime:
    """Return the moment of an ISO 8601 text, by default in the time zone of the settings; a date is its begin."""
    try:
        day = parse_date(text)
        found = datetime.datetime.combine(day, datetime.time()) if day else parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no time like 2026-11-21 or 2026-11-21T08:30")
    return timezone.make_aware(found) if timezone.is_naive(found) else found
