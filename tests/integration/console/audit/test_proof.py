"""Verification: whatever is done to what was sealed is found, and named."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from django.utils import timezone
from pytest_django import Settings

from a2a_console.audit.proof import Broken, Proof, head, verify
from a2a_tasks.audit import Action
from a2a_tasks.audit.chain import BEGINNING, Salts, hash_link, mac, redact
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.store import audit, audit_seals
from a2a_tasks.store.audit_past import purge_audit
from a2a_tasks.store.audit_triggers import unlock

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("empty_audit_log"),
    pytest.mark.quick_on("sqlite"),
]


def write(*names: str) -> None:
    """Entries about these, sealed together."""
    for name in names:
        audit.note(Action.TASK_SEND, name, actor="key:abc")
    audit_seals.seal_all()


def proof(since: str = "") -> Proof:
    (*_, found) = verify(since)
    return found


def link(number: int) -> AuditLink:
    return AuditLink.objects.get(pk=number)


def entries(number: int) -> int:
    return AuditEntry.objects.filter(pk=link(number).entry_id).update(actor="mallory")


def swap() -> None:
    one, two = (AuditEntry.objects.get(pk=link(n).entry_id) for n in (2, 3))
    AuditEntry.objects.filter(pk=one.pk).update(object=two.object)
    AuditEntry.objects.filter(pk=two.pk).update(object=one.object)


def forge() -> None:
    """Alter an entry, and write the chain anew from there, as whoever has no key can."""
    AuditEntry.objects.filter(pk=link(3).entry_id).update(actor="mallory")
    previous = link(2).hash
    for row in AuditLink.objects.filter(pk__gt=2).order_by("pk"):
        entry = AuditEntry.objects.get(pk=row.entry_id)
        salts = Salts(row.actor_salt, row.object_salt)
        previous = hash_link(row.number, audit_seals.entry_of(entry), salts, previous)
        AuditLink.objects.filter(pk=row.pk).update(hash=previous)
        AuditSeal.objects.filter(pk=row.pk).update(
            hash=previous, mac=mac(b"guess", row.number, previous)
        )


def blame() -> None:
    """Say that the one who did it was erased."""
    row = link(3)
    entry = AuditEntry.objects.get(pk=row.entry_id)
    AuditLink.objects.filter(pk=3).update(actor_salt=redact(row.actor_salt, entry.actor))
    AuditEntry.objects.filter(pk=entry.pk).update(actor="erased:1")


#: What is done to a log of six links, sealed at 3 and 6, and what is said then.
ATTACKS: dict[str, tuple[Callable[[], object], str]] = {
    "an entry altered": (lambda: entries(2), "of link 2, is not what was sealed"),
    "two entries swapped": (swap, "of link 2, is not what was sealed"),
    "an entry removed": (
        lambda: AuditEntry.objects.filter(pk=link(4).entry_id).delete(),
        "of link 4, is gone",
    ),
    "a link removed": (lambda: AuditLink.objects.filter(pk=4).delete(), "links 4 to 4 are gone"),
    "the beginning removed": (
        lambda: AuditLink.objects.filter(pk__lte=2).delete(),
        "before link 3 is gone, and no seal",
    ),
    "the beginning removed up to a seal": (
        lambda: AuditLink.objects.filter(pk__lte=3).delete(),
        "before link 4 is gone, and no entry says so",
    ),
    "the end removed": (
        lambda: AuditLink.objects.filter(pk__gt=4).delete(),
        "links 5 to 6 are gone",
    ),
    "the end removed with its seal": (
        lambda: (AuditLink.objects.filter(pk__gt=4).delete(), AuditSeal.objects.last().delete()),  # type: ignore[union-attr]
        "link 4, the last one, is not sealed",
    ),
    "everything removed but seals": (lambda: AuditLink.objects.all().delete(), "before link 7"),
    "a link altered": (
        lambda: AuditLink.objects.filter(pk=5).update(hash="f" * 64),
        "of link 5, is not what was sealed",
    ),
    "a seal altered": (
        lambda: AuditSeal.objects.filter(pk=3).update(mac="f" * 64),
        "the seal on link 3",
    ),
    "everything written anew": (forge, "the seal on link 3"),
    "somebody called erased": (blame, "no entry says so"),
}


class TestVerify:
    def test_an_empty_log_is_whole(self) -> None:
        assert (proof().verified, head()) == (0, (0, BEGINNING))

    def test_a_whole_log_is_whole_and_what_is_not_sealed_is_counted(self) -> None:
        write("a", "b")
        audit.note(Action.TASK_SEND, "c")
        found = proof()
        assert (found.verified, found.last, found.hash) == (2, *head())
        assert (found.unsealed, found.guarded) == (1, True)

    @pytest.mark.parametrize("attack", sorted(ATTACKS))
    def test_finds_it(self, attack: str) -> None:
        write("a", "b", "c")
        write("d", "e", "f")
        assert proof().verified == 6
        act, said = ATTACKS[attack]
        with unlock():
            act()
        with pytest.raises(Broken, match=said):
            proof()

    def test_an_entry_put_in_is_not_sealed(self) -> None:
        write("a")
        AuditEntry.objects.create(pk=10**6, action="task.send", actor="mallory", object="b")
        assert proof().unsealed == 1

    def test_wants_the_head_that_was_kept_elsewhere(self) -> None:
        write("a", "b")
        _, kept = head()
        write("c")
        assert proof(kept).verified == 3
        with unlock():  # what no seal tells: the newest links went with their seal
            AuditSeal.objects.filter(pk=3).delete()
            AuditLink.objects.filter(pk=3).delete()
        assert proof(kept).verified == 2
        write("d")
        with unlock():
            AuditSeal.objects.filter(pk__gte=2).delete()
            AuditLink.objects.all().delete()
        with pytest.raises(Broken, match="truncated or rewritten"):
            proof(kept)

    def test_another_key_vouches_for_nothing_and_former_ones_do(self, settings: Settings) -> None:
        settings.A2A_AUDIT_KEYS = "x" * 32
        write("a")
        settings.A2A_AUDIT_KEYS = f"{'y' * 32}, {'x' * 32}"
        write("b")
        assert proof().verified == 2
        settings.A2A_AUDIT_KEYS = "y" * 32
        with pytest.raises(Broken, match="the seal on link 1 is not of this host's keys"):
            proof()

    def test_reads_in_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("a2a_console.audit.proof.SLICE", 2)
        write(*"abcde")
        assert [found.verified for found in verify()][-1] == 5


class TestRetention:
    def aged(self) -> datetime.datetime:
        """The log is of yesterday; a moment after it."""
        with unlock():
            AuditSeal.objects.update(at=timezone.now() - datetime.timedelta(days=1))
        return timezone.now() - datetime.timedelta(hours=1)

    def test_removes_the_beginning_and_the_rest_is_whole(self) -> None:
        write("a", "b")
        write("c")
        before = self.aged()
        write("d")
        assert list(purge_audit(before, 100)) == [3]
        found = proof()
        assert (found.first, found.verified) == (4, 2)
        kept = AuditEntry.objects.order_by("pk").values_list("action", "object")
        assert list(kept) == [("task.send", "d"), ("audit.purge", "3")]

    def test_goes_on_from_there(self) -> None:
        write("a")
        before = self.aged()
        write("b")
        assert sum(purge_audit(before, 100)) == 1
        before = self.aged()
        write("c")
        assert sum(purge_audit(before, 100)) == 2
        assert proof().first == 4

    def test_goes_in_pieces_that_end_at_seals(self) -> None:
        for name in "abcdef":
            write(name)
        before = self.aged()
        write("g")
        assert list(purge_audit(before, 2)) == [2, 2, 2]
        assert proof().first == 7

    def test_leaves_what_is_young_and_the_newest_seal(self) -> None:
        write("a")
        assert list(purge_audit(timezone.now() - datetime.timedelta(days=1), 100)) == []
        assert list(purge_audit(self.aged() + datetime.timedelta(days=2), 100)) == []
        assert proof().verified == 1

    def test_what_it_left_cannot_be_cut_further_without_an_entry(self) -> None:
        for name in "abc":
            write(name)
        before = self.aged()
        write("d")
        list(purge_audit(before, 100))
        write("e")
        with unlock():
            AuditLink.objects.filter(pk__lte=5).delete()
        with pytest.raises(Broken, match="no entry says so"):
            proof()
