"""A hook of MkDocs: links to files of the checkout that are no pages become their paths, and decisions stand in the menu."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

#: A link of Markdown; the target has no scheme.
LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(((?:\.\./)+[^()\s:]*)\)")


def on_config(config: Any) -> Any:
    """Add the decisions to the menu: there are many, and a new one must not be forgotten."""
    pages = sorted(Path(config["docs_dir"]).glob("decisions/*.md"))
    config["nav"][-1]["Decisions"] += [
        f"decisions/{p.name}" for p in pages if p.name != "README.md"
    ]
    return config


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Write links that leave the documentation as text: the site has no such files."""

    def write(found: re.Match[str]) -> str:
        words, target = found.groups()
        path = posixpath.normpath(
            posixpath.join("docs", posixpath.dirname(page.file.src_uri), target)
        )
        if path.startswith("docs/"):
            return found[0]
        path = path.partition("#")[0]
        return words if path in words else f"{words} (`{path}`)"

    return LINK.sub(write, markdown)
