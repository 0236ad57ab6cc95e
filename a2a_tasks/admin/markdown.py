"""Markdown of strangers as HTML that does nothing: rendered without raw HTML and images, then cleaned all the same."""

from __future__ import annotations

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

__all__ = ["LONGEST", "rendered"]

#: Characters that are rendered; what is longer is shown as it is.
LONGEST = 20_000
TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code"),
    *("em", "strong", "s", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"),
}
#: Where links may lead: elsewhere. One into the admin would be followed with the operator's session.
SCHEMES = ("https://", "http://", "mailto:")

# An image would be fetched by whoever looks: from elsewhere it tells of it, from here it is a request in their name.
_markdown = (
    MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
)


def rendered(text: str) -> SafeString:
    """The text as HTML of TAGS alone, whose links lead away from this host. The only HTML that is made of what clients wrote."""
    html = nh3.clean(
        _markdown.render(text),
        tags=TAGS,
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        attribute_filter=_admitted,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        url_schemes={"http", "https", "mailto"},
    )
    return mark_safe(html)  # noqa: S308  # nosec B308 B703 - cleaned in the line above


def _admitted(tag: str, name: str, value: str) -> str | None:
    return value if name != "href" or value.lower().startswith(SCHEMES) else None
