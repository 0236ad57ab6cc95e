"""What is remembered of credentials: until it expires, the newest of them, and no two under one key."""

from __future__ import annotations

from a2a_tasks.access.credentials import ShownCredential
from a2a_tasks.access.identity_cache import TtlCache, digest


class TestTheCache:
    def test_forgets_a_value_when_its_time_is_over(self) -> None:
        at = 0.0
        cache = TtlCache[str](10, lambda: at)
        cache.keep(b"a", "alice", 30)
        at = 29.9
        assert cache.get(b"a") == "alice"
        at = 30.0
        assert cache.get(b"a") is None
        assert len(cache) == 0

    def test_keeps_nothing_that_has_expired_already(self) -> None:
        cache = TtlCache[str](10)
        cache.keep(b"a", "alice", 0)
        cache.keep(b"b", "bob", -1)
        assert len(cache) == 0

    def test_gives_up_the_oldest_and_one_that_is_kept_anew_is_new(self) -> None:
        cache = TtlCache[str](2)
        cache.keep(b"a", "alice", 60)
        cache.keep(b"b", "bob", 60)
        cache.keep(b"a", "alice again", 60)
        cache.keep(b"c", "charlie", 60)
        assert [cache.get(key) for key in (b"a", b"b", b"c")] == ["alice again", None, "charlie"]


def test_no_two_credentials_have_one_key() -> None:
    shown = [
        ShownCredential(scheme, text, address)
        for scheme in ("basic", "bearer", "")
        for text in ("x", "y", "")
        for address in ("10.0.0.1", "10.0.0.2", "")
    ]
    assert len({digest(one) for one in shown}) == len(shown)
