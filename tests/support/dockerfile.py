"""The Dockerfile, read as Docker reads it."""

from __future__ import annotations

__all__ = ["instructions"]


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, with their arguments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    pairs = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [(word, " ".join(rest.split()) if word != "RUN" else rest) for word, rest in pairs]
