"""A number is a request, always the same; and there is something of everything in a few thousand."""

from __future__ import annotations

import random
from collections import Counter

from lab.hostile.bending import BENDS, hostile
from lab.hostile.golden import golden


def known(name: str, chance: random.Random) -> str:
    return f"{name}-{chance.random()}"


def test_the_same_number_is_the_same_request() -> None:
    assert [hostile(n, known) for n in range(200)] == [hostile(n, known) for n in range(200)]


def test_numbers_are_different_requests() -> None:
    assert len({hostile(n, known) for n in range(1000)}) > 950


def test_every_way_of_bending_is_taken_at_every_mount() -> None:
    requests = [hostile(n, known) for n in range(3000)]
    bends = Counter(name for request in requests for name in request.bent)
    assert bends.keys() == {bend.__name__ for bend, _ in BENDS}
    mounts = {request.target.split(b"/")[4] for request in golden() if b"/a2a/" in request.target}
    assert mounts == {b"seed-0", b"0.0", b"0.1", b"0.2", b"0.3", b"1.0-draft", b"1.0"}


def test_no_golden_request_leads_outside() -> None:
    assert not any(b"hooks.example.com" in request.body for request in golden())
