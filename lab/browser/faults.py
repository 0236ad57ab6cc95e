"""What a browser complains about: a broken policy, an error of a script, a request to another host."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, WebError

__all__ = ["Faults"]

_HERE = {"about", "blob", "data"}


class Faults:
    """All that was said against the pages of one test."""

    def __init__(self, url: str) -> None:
        """Of pages of the host at this URL."""
        self._hosts = {urlsplit(url).netloc}
        self._said: list[str] = []
        self._expected: list[str] = []

    def expect(self, pattern: str) -> None:
        """The test means this one to happen, such as `status of 404`."""
        self._expected.append(pattern)

    def also(self, url: str) -> None:
        """This is the host, too."""
        self._hosts.add(urlsplit(url).netloc)

    def listen(self, context: BrowserContext) -> None:
        """Hear what its pages say, those it opens itself among them."""
        context.on("console", self._console)
        context.on("weberror", self._uncaught)
        context.on("request", self._asked)

    @property
    def left(self) -> list[str]:
        """What was not expected."""
        return [
            line
            for line in self._said
            if not any(re.search(pattern, line) for pattern in self._expected)
        ]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._said.append(f"{_where(message.page)} {message.type}: {message.text}")

    def _uncaught(self, fault: WebError) -> None:
        self._said.append(f"{_where(fault.page)} uncaught: {fault.error}")

    def _asked(self, request: Request) -> None:
        there = urlsplit(request.url)
        if there.scheme not in _HERE and there.netloc not in self._hosts:
            self._said.append(f"asked another host: {request.url}")


def _where(page: Page | None) -> str:
    return page.url if page else "?"
