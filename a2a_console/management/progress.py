"""The progress of a command in one line of a terminal; nothing is written elsewhere."""

from __future__ import annotations

from django.core.management.base import OutputWrapper

__all__ = ["Progress"]

WIDTH = 30


class Progress:
    """A line of progress: `with Progress(out, total, "tasks") as shown: shown(done)`; a total of 0 is unknown."""

    def __init__(self, out: OutputWrapper, total: int, what: str) -> None:
        self._out, self._total, self._what = out, total, what
        self._shown = out.isatty()

    def __call__(self, done: int) -> None:
        """Show the number of done items."""
        if not self._shown:
            return
        bar = ""
        if self._total:
            full = min(WIDTH, WIDTH * done // self._total)
            bar = f"[{'#' * full}{'.' * (WIDTH - full)}] "
        of = f" of {self._total}" if self._total else ""
        self._out.write(f"\r{bar}{done}{of} {self._what}", ending="")
        self._out.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._out.write("\r\x1b[K", ending="")
