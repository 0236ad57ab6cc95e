"""The broken builds are broken as they say, and there are kills that show it."""

from __future__ import annotations

import pytest

from lab.faultlab.broken import spoilt
from lab.framework_kills.broken import BUILDS, TRIES, Build, choose_cases
from lab.framework_kills.checker import INVARIANTS
from tests import ROOT
from tests.support.rows import rows

pytestmark = pytest.mark.backend("sqlite")


@rows("made", BUILDS.values(), ids=lambda made: made.broken.name)
def test_the_mistake_fits_the_code_and_somebody_looks_for_it(made: Build) -> None:
    broken = made.broken
    compile(spoilt(broken, (ROOT / broken.file).read_text()), broken.file, "exec")
    assert set(broken.breaks) <= INVARIANTS.keys()
    assert len(list(choose_cases(made, 1))) == TRIES
