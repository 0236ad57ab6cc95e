"""Who signs in with a browser."""

from __future__ import annotations

from django.conf import settings
from playwright.async_api import BrowserContext, Page

from tests.support.people import ACME, PASSWORD, Person, operator, signed_in, staff

__all__ = ["ACME", "PASSWORD", "Person", "enter", "operator", "signed_in", "staff"]


async def enter(place: Page | BrowserContext, url: str, session: str) -> None:
    """Give a browser the cookie of a session."""
    context = place.context if isinstance(place, Page) else place
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": url}
    await context.add_cookies([cookie])  # type: ignore[list-item]
