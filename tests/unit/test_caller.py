"""Drawers: each belongs to one caller, or to those who share it, and to nobody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.caller import ANONYMOUS, TENANTS, Caller, OwnerScope, ScopePart, is_tenant
from a2a_tasks.protocol.errors import InvalidParams

tenants = st.text("ab/%~", max_size=4).filter(is_tenant)
routed = st.text("ab/%~", max_size=4)
principals = st.sampled_from(["key:a", "user:7", "jwt:i s"])


class TestADrawer:
    @given(st.tuples(tenants, routed), st.tuples(tenants, routed))
    def test_has_one_tenant_for_each_two_names(
        self, one: tuple[str, str], other: tuple[str, str]
    ) -> None:
        drawers = [
            Caller(principal="user:7", tenant=own).scope("a", of) for own, of in (one, other)
        ]
        assert (drawers[0].tenant == drawers[1].tenant) == (one == other)

    def test_is_called_as_it_always_was_where_nothing_can_be_mistaken(self) -> None:
        known = Caller(principal="key:a", tenant="acme")
        assert [known.scope("a", t).tenant for t in ("", "x", "b/c")] == [
            "acme",
            "acme/x",
            "acme/b/c",
        ]
        assert ANONYMOUS.scope("a") == OwnerScope("", "", "a")

    def test_of_a_tenant_that_only_a_request_names_cannot_be_the_tenant_of_credentials(
        self,
    ) -> None:
        assert ANONYMOUS.scope("a", "acme").tenant == "/acme"
        assert not is_tenant("/acme")

    def test_with_too_long_a_name_is_the_clients_mistake(self) -> None:
        known = Caller(principal="key:a", tenant="t" * 128)
        assert len(known.scope("a", "r" * 127).tenant) == 256
        for ask in (known.scope, known.own):
            with pytest.raises(InvalidParams) as refused:
                ask("a", "r" * 128)
            assert refused.value.violations == (("tenant", "is too long"),)


class TestSharing:
    @given(tenants.filter(bool), routed, principals, principals)
    def test_is_among_all_callers_of_a_tenant(
        self, tenant: str, of: str, one: str, other: str
    ) -> None:
        drawers = {
            Caller(principal=p, tenant=tenant).scope("a", of, shared=True).owner
            for p in (one, other)
        }
        assert drawers == {TENANTS}

    @given(routed, principals)
    def test_needs_a_tenant_of_credentials(self, of: str, principal: str) -> None:
        for caller in (Caller(principal=principal), ANONYMOUS):
            assert (
                caller.scope("a", of, shared=True) == caller.scope("a", of) == caller.own("a", of)
            )

    def test_leaves_to_each_what_it_made_before_and_after(self) -> None:
        alice = Caller(principal="key:a", tenant="acme")
        assert alice.scope("a", shared=True).parts == (ScopePart(TENANTS), ScopePart("key:a"))
        assert alice.scope("a").parts == (ScopePart("key:a"), ScopePart(TENANTS, "key:a"))
