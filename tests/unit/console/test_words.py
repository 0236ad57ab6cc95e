"""Words that read like a translation are gone from the pages."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from tests import ROOT

pytestmark = pytest.mark.checkout
GONE = (
    *("began with", "lasted", "begins anew", "with nothing left", "it needs you", "what for"),
    *("this address cannot be answered", "by ended", "uses of budgets", "there is no such task\\."),
    *("demo works", "the host refused", "was cancelled"),
)
#: Pages, and the texts of scripts and of Python that are shown.
FILES = chain(
    ROOT.glob("a2a_console/templates/**/*.html"),
    ROOT.glob("a2a_project/**/templates/**/*.html"),
    ROOT.glob("a2a_console/static/a2a_console/*/*.js"),
)
SHOWN = re.compile(
    r"(?:description|short_description|verbose_name\w*|help_text|title)=f?\"([^\"]*)\""
)


def test_no_page_has_them() -> None:
    texts = {str(path): path.read_text(encoding="utf-8") for path in FILES}
    for path in chain(ROOT.glob("a2a_console/**/*.py"), ROOT.glob("a2a_tasks/models/*.py")):
        texts[str(path)] = "\n".join(SHOWN.findall(path.read_text(encoding="utf-8")))
    met = {
        path: words
        for path, text in texts.items()
        for words in GONE
        if re.search(words, text, re.I)
    }
    assert not met
    assert len(texts) > 100
