"""The statements for conversations on PostgreSQL. They follow the one that writes batches, in its transaction."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_tasks.conversation_changes import ConversationChanged
from a2a_tasks.store.backend.statements import fetch
from a2a_tasks.store.records import Batch

__all__ = ["change_conversations"]

# A change counts if its key has the version that the turn has read. A transaction that waited for a row reads its version
# anew. Of two runs that begin one key at once, `on conflict` lets the first one win. Returns the changes that do not count.
CHANGE_MEMORY = """
with input as (
  select i.n, t.context_id, i.run, i.key, i.expected, i.kind, i.value
  from unnest(%(n)s::int[], %(task)s::bigint[], %(run)s::bigint[], %(key)b::text[], %(expected)s::bigint[],
    %(kind)b::text[], %(value)b::bytea[]) as i(n, task, run, key, expected, kind, value)
  join a2a_tasks_task t on t.id = i.task
), removed as (
  delete from a2a_tasks_conversationmemory m using input i
  where (m.context_id, m.key, m.version) = (i.context_id, i.key, i.expected) and i.value is null returning i.n
), changed as (
  update a2a_tasks_conversationmemory m set version = i.run, kind = i.kind, value = i.value, updated_at = statement_timestamp()
  from input i
  where (m.context_id, m.key, m.version) = (i.context_id, i.key, i.expected) and i.value is not null returning i.n
), added as (
  insert into a2a_tasks_conversationmemory (context_id, key, version, kind, value)
  select context_id, key, run, kind, value from input where expected = 0 and value is not null order by context_id, key
  on conflict (context_id, key) do nothing returning context_id, key, version
)
select i.key from input i
where not exists (select from removed r where r.n = i.n) and not exists (select from changed c where c.n = i.n)
  and not exists (select from added a where (a.context_id, a.key, a.version) = (i.context_id, i.key, i.run))
"""

#: The items that are cut off go before the statement that may give their numbers to others.
TRIM_LISTS = """
delete from a2a_tasks_conversationitem e
using unnest(%(task)s::bigint[], %(key)b::text[], %(kept)s::int[]) as i(task, key, kept)
join a2a_tasks_task t on t.id = i.task join a2a_tasks_conversationlist l on l.context_id = t.context_id and l.key = i.key
where e.list_id = l.id and e.number > i.kept returning 1
"""

CHANGE_LISTS = """
with input as (
  select i.n, t.context_id, i.run, i.key, i.expected, i.count, i.size
  from unnest(%(n)s::int[], %(task)s::bigint[], %(run)s::bigint[], %(key)b::text[], %(expected)s::bigint[],
    %(count)s::int[], %(size)s::bigint[]) as i(n, task, run, key, expected, count, size)
  join a2a_tasks_task t on t.id = i.task
), changed as (
  update a2a_tasks_conversationlist l set version = i.run, count = i.count, size = i.size, updated_at = statement_timestamp()
  from input i where (l.context_id, l.key, l.version) = (i.context_id, i.key, i.expected) returning i.n, l.id
), added as (
  insert into a2a_tasks_conversationlist (context_id, key, version, count, size)
  select context_id, key, run, count, size from input where expected = 0 order by context_id, key
  on conflict (context_id, key) do nothing returning id, context_id, key, version
), mine as (
  select n, id from changed
  union all
  select i.n, a.id from input i join added a on (a.context_id, a.key, a.version) = (i.context_id, i.key, i.run)
), item as (
  insert into a2a_tasks_conversationitem (list_id, number, value)
  select m.id, e.number, e.value
  from unnest(%(item_n)s::int[], %(numbers)s::int[], %(items)b::text[]) as e(n, number, value) join mine m on m.n = e.n
)
select i.key from input i where not exists (select from mine m where m.n = i.n)
"""


def change_conversations(batches: Sequence[Batch]) -> None:
    """Write what these batches change in their conversations; call it in the transaction that writes them.

    Raises ConversationChanged: then the transaction must be rolled back.
    """
    _change_memory(batches)
    _change_lists(batches)


def _change_memory(batches: Sequence[Batch]) -> None:
    changes = [(b, change) for b in batches if b.conversation for change in b.conversation.memory]
    if not changes:
        return
    values = {
        "n": list(range(len(changes))),
        "task": [batch.task for batch, _ in changes],
        "run": [batch.run for batch, _ in changes],
        "key": [change.key for _, change in changes],
        "expected": [change.expected for _, change in changes],
        "kind": [change.kind for _, change in changes],
        "value": [change.value for _, change in changes],
    }
    size = sum(len(change.value or b"") for _, change in changes)
    for (key,) in fetch(CHANGE_MEMORY, values, size=size):
        raise ConversationChanged(key)


def _change_lists(batches: Sequence[Batch]) -> None:
    changes = [(b, change) for b in batches if b.conversation for change in b.conversation.lists]
    if not changes:
        return
    trimmed = [(batch, change) for batch, change in changes if change.trims]
    if trimmed:
        kept = {
            "task": [batch.task for batch, _ in trimmed],
            "key": [change.key for _, change in trimmed],
            "kept": [change.kept for _, change in trimmed],
        }
        fetch(TRIM_LISTS, kept)
    items = [
        (n, number, item)
        for n, (_, change) in enumerate(changes)
        for number, item in enumerate(change.added, change.kept + 1)
    ]
    values = {
        "n": list(range(len(changes))),
        "task": [batch.task for batch, _ in changes],
        "run": [batch.run for batch, _ in changes],
        "key": [change.key for _, change in changes],
        "expected": [change.expected for _, change in changes],
        "count": [change.kept + len(change.added) for _, change in changes],
        "size": [change.size for _, change in changes],
        "item_n": [n for n, _, _ in items],
        "numbers": [number for _, number, _ in items],
        "items": [item for _, _, item in items],
    }
    size = sum(len(item) for _, _, item in items)
    for (key,) in fetch(CHANGE_LISTS, values, size=size):
        raise ConversationChanged(key)
