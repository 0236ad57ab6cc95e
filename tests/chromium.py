"""A real browser for the tests of pages, where this machine has one (`apt-get install chromium`)."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, async_playwright

__all__ = ["path", "visiting"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@functools.cache
def path() -> str | None:
    """Where it is; None = nowhere."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@asynccontextmanager
async def visiting() -> AsyncIterator[Page]:
    """A page of a browser that was never anywhere."""
    # Its own sandbox cannot be made by root; it is shown nothing but our pages.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path(), args=options)
        try:
            yield await browser.new_page()
        finally:
            await browser.close()
