"""Untrusted Markdown as harmless HTML: rendered without raw HTML and images, then sanitized as well."""

from __future__ import annotations

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

__all__ = ["MAX_LENGTH", "render"]

#: The largest text in characters that is rendered; a longer one is shown as it is.
MAX_LENGTH = 20_000
TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code"),
    *("em", "strong", "s", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"),
}
#: The schemes of links. A relative link into the admin would be followed with the operator's session.
SCHEMES = ("https://", "http://", "mailto:")

# The operator's browser would fetch an image: a remote one reveals the operator, a local one uses the session.
_markdown = (
    MarkdownIt("commonmark", {"html": False, "breaks": True})
    .enable(["table", "strikethrough"])
    .disable("image")
)


def render(text: str) -> SafeString:
    """Return the text as HTML of TAGS only, with external links only. No other HTML is made of untrusted text."""
    html = nh3.clean(
        _markdown.render(text),
        tags=TAGS,
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        attribute_filter=_filter_attribute,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        url_schemes={"http", "https", "mailto"},
    )
    return mark_safe(html)  # noqa: S308  # nosec B308 B703 - nh3.clean above sanitized it


def _filter_attribute(tag: str, name: str, value: str) -> str | None:
    return value if name != "href" or value.lower().startswith(SCHEMES) else None
