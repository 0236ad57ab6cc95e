"""How pages look: pictures of them, and whether everybody can use them (axe), on a desk and on a phone, by day and by night."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.async_playwright import Axe
from axe_playwright_python.base import AxeResults
from playwright.async_api import Page

from tests.support import chromium

__all__ = ["LOOKS", "Look", "axe", "presentable", "shot"]

GRAVE = {"serious", "critical"}
_OPTIONS = {
    "resultTypes": ["violations"],
    # It would fetch what style sheets import, and put it into the page, against the policy.
    "preload": False,
    # The admin's search field is labelled by a picture with a text, which this rule does not see.
    "rules": {"label-title-only": {"enabled": False}},
}
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
#: How much of a list is out of sight, which could be scrolled by itself. What is folded has the size of an earlier look.
_HIDDEN = """Math.max(0, ...Array.from(
  document.querySelectorAll(":is(.results, .a2a-scroll):not(details:not([open]) *)"), (one) => one.scrollWidth - one.clientWidth))"""


@dataclass(frozen=True)
class Look:
    """One way to look at a page."""

    name: str
    width: int
    height: int
    scheme: Literal["light", "dark"]
    #: Does axe look, too? Both widths and both schemes are enough for it.
    judged: bool = False


LOOKS = (
    Look("light", 1280, 900, "light", judged=True),
    Look("dark", 1280, 900, "dark"),
    Look("laptop", 1024, 700, "light"),
    Look("phone", 390, 844, "light"),
    Look("phone-dark", 390, 844, "dark", judged=True),
)


async def axe(page: Page, within: str | None = None) -> None:
    """AssertionError if axe-core finds something serious or critical, with what and where. Of the part `within` (CSS) only."""
    results = await Axe().run(page, within, _OPTIONS)
    assert not _grave(results), results.generate_report()


def _grave(results: AxeResults) -> list[dict[str, Any]]:
    return [found for found in results.response["violations"] if found["impact"] in GRAVE]


async def shot(page: Page, name: str) -> Path:
    """Keep a picture of the whole page with the run: `var/screenshots/<backend>/<name>.png`."""
    path = chromium.PICTURES / f"{name}.png"
    await page.screenshot(path=path, full_page=True, animations="disabled")
    return path


async def presentable(page: Page, name: str) -> None:
    """Look at the page in all ways: a picture each, nothing grave for axe, and no scrolling sideways, of the page or of a list."""
    for look in LOOKS:
        await page.set_viewport_size({"width": look.width, "height": look.height})
        await page.emulate_media(color_scheme=look.scheme)
        await shot(page, f"{name}-{look.name}")
        assert await page.evaluate(_OVERFLOW) <= 0, f"{name} is wider than {look.name}"
        hidden = await page.evaluate(_HIDDEN)
        assert hidden <= 0, f"a list of {name} is {hidden} px wider than {look.name}"
        if look.judged:
            await axe(page)
    first = LOOKS[0]
    await page.set_viewport_size({"width": first.width, "height": first.height})
    await page.emulate_media(color_scheme=first.scheme)
