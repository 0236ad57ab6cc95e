"""Tasks by words of what they began with (`Message.opening`): each has to be the beginning of one of its words.

PostgreSQL has an index of words over these rows, which are written once. SQLite has none: there the words are looked
for wherever they stand in the opening, in the window of keys that a page looks at (`store/selection.py`).
"""

from __future__ import annotations

import math
import re
from typing import Any

from django.db import connection, transaction
from django.db.models import BooleanField, Exists, OuterRef, Q
from django.db.models.expressions import RawSQL

from a2a_tasks.models import Message

__all__ = ["hits", "install", "remove", "said", "words_of"]

#: What counts as a word is one rule for both: letters and digits. PostgreSQL's own would keep addresses whole.
_WORD = re.compile(r"[^\W_]+")
#: Words of one search.
MOST_WORDS = 8
#: Words that so large a part of all tasks has are common; their entries are not even counted up.
COMMON = 0.05
_VECTOR = "to_tsvector('simple', regexp_replace(opening, '[^[:alnum:]]+', ' ', 'g'))"
_INDEX = "a2a_tasks_message_words"
_CREATE = f"""
create index {_INDEX} on a2a_tasks_message using gin (({_VECTOR})) where number = 1 and opening <> ''
"""
_HITS = f"""
select task_id from a2a_tasks_message
where number = 1 and opening <> '' and {_VECTOR} @@ to_tsquery('simple', %s) limit %s
"""  # noqa: S608 - a constant
#: The words that ANALYZE found to be frequent, and what part of all openings has them.
_FREQUENT = f"""
select word, part from pg_stats,
  unnest(most_common_elems::text::text[], most_common_elem_freqs::float[]) as frequent(word, part)
where schemaname = current_schema and tablename = '{_INDEX}' and word is not null
"""  # noqa: S608 - a constant
_MATCHES = f"opening <> '' and {_VECTOR} @@ to_tsquery('simple', %s)"


def install(schema: Any) -> None:
    """Make the index, where there is one."""
    if schema.connection.vendor == "postgresql":
        schema.execute(_CREATE)


def remove(schema: Any) -> None:
    """Take it away."""
    if schema.connection.vendor == "postgresql":
        schema.execute(f"drop index {_INDEX}")


def words_of(text: str) -> list[str]:
    """The words that are looked for; the same ones in any order."""
    return sorted(set(_WORD.findall(text.lower())))[:MOST_WORDS]


def hits(words: list[str], most: int) -> list[int] | None:
    """The keys of the tasks that have these words; None if there may be more than `most`: the words are common ones.

    The index is walked whatever the planner believes: it cannot know how rare the beginning of a word is, and would
    rather read a million rows backwards for one that nobody said.
    """
    if connection.vendor != "postgresql" or _share(words) >= COMMON:
        return None
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("set local enable_seqscan = off; set local enable_indexscan = off")
        cursor.execute(_HITS, [_query(words), most + 1])
        found = [key for (key,) in cursor.fetchall()]
        cursor.execute("set local enable_seqscan = on; set local enable_indexscan = on")
    return found if len(found) <= most else None


def _share(words: list[str]) -> float:
    """About how large a part of all tasks has these words, at least, as far as it is known; else 0."""
    with connection.cursor() as cursor:
        cursor.execute(_FREQUENT)
        frequent = cursor.fetchall()
    begun = ([part for known, part in frequent if known.startswith(word)] for word in words)
    return math.prod(max(parts, default=0.0) for parts in begun)


def said(words: list[str]) -> Q:
    """Those tasks that have these words, one by one."""
    first = Message.objects.filter(task_id=OuterRef("pk"), number=1)
    if connection.vendor == "postgresql":
        first = first.filter(RawSQL(f"({_MATCHES})", [_query(words)], BooleanField()))  # noqa: S611  # nosec B611 - a constant
    else:
        for word in words:
            first = first.filter(opening__icontains=word)
    return Q(Exists(first))


def _query(words: list[str]) -> str:
    return " & ".join(f"'{word}':*" for word in words)
