"""A real browser for the tests of pages, where this machine has one (`apt-get install chromium`)."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page, async_playwright

from tests import ROOT, backend

__all__ = ["PICTURES", "path", "running", "visiting"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Where the pictures of a run are kept; those of the last one are overwritten.
PICTURES = ROOT / "var" / "screenshots" / backend.backend()
#: Nothing of its own: it asks nobody but the pages' host.
OPTIONS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
]


@functools.cache
def path() -> str | None:
    """Where it is; None = nowhere."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@asynccontextmanager
async def running() -> AsyncIterator[Browser]:
    """The browser, for as long as the block lasts."""
    # Its own sandbox cannot be made by root; it is shown nothing but our pages.
    options = [*OPTIONS, "--no-sandbox"] if os.geteuid() == 0 else OPTIONS
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path(), args=options)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def visiting() -> AsyncIterator[Page]:
    """A page of a browser that was never anywhere."""
    async with running() as browser:
        yield await browser.new_page()
