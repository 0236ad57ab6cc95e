"""The search of tasks by words: each has to begin a word in the beginning of the first message (`Message.opening`).

PostgreSQL has an index of words over these rows, which are written once. SQLite has none: there the words may stand
anywhere in the opening, and the search covers the keys of one window (`a2a_console/search/selection.py`).
"""

from __future__ import annotations

import math
import re

from django.db import connection
from django.db.models import BooleanField, Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL

from a2a_console import sparse_index
from a2a_tasks.models import Message
from a2a_tasks.store.backend.server import is_server

__all__ = ["hits", "match_words", "words_of"]

#: A word is made of letters and digits in both databases. PostgreSQL's own parser would keep addresses whole.
_WORD = re.compile(r"[^\W_]+")
#: The largest number of words of one search.
MAX_WORDS = 8
#: The part of all tasks from which words are common; the index is not searched for them.
COMMON = 0.05
#: The words that ANALYZE found to be frequent, and the part of all openings that has each.
_FREQUENT = """
select word, part from pg_stats,
  unnest(most_common_elems::text::text[], most_common_elem_freqs::float[]) as frequent(word, part)
where schemaname = current_schema and tablename = 'a2a_tasks_message_words' and word is not null
"""
#: As in the index, which the migration of this app makes.
_MATCHES = """(opening <> ''
  and to_tsvector('simple', regexp_replace(opening, '[^[:alnum:]]+', ' ', 'g')) @@ to_tsquery('simple', %s))"""


def words_of(text: str) -> list[str]:
    """Return the words to search for, in a fixed order."""
    return sorted(set(_WORD.findall(text.lower())))[:MAX_WORDS]


def hits(words: list[str], limit: int) -> list[int] | None:
    """Return the keys of the tasks that have these words; None if there may be more than `limit`, as for common words.

    The planner is made to use the index: it cannot know how rare the beginning of a word is, and would rather scan a
    million rows backwards for a word that no task has.
    """
    if not is_server() or _share(words) >= COMMON:
        return None
    with sparse_index.plan(sparse_index.BITMAPS):
        found = list(_filter(words).values_list("task_id", flat=True)[: limit + 1])
    return found if len(found) <= limit else None


def _share(words: list[str]) -> float:
    """Estimate a lower bound for the part of all tasks that has these words; 0 if it is unknown."""
    with connection.cursor() as cursor:
        cursor.execute(_FREQUENT)
        frequent = cursor.fetchall()
    begun = ([part for known, part in frequent if known.startswith(word)] for word in words)
    return math.prod(max(parts, default=0.0) for parts in begun)


def match_words(words: list[str]) -> Q:
    """Return a condition that checks each task for these words."""
    return Q(Exists(_filter(words).filter(task_id=OuterRef("pk"))))


def _filter(words: list[str]) -> QuerySet[Message]:
    """Return the first messages of tasks that have these words."""
    first = Message.objects.filter(number=1)
    if is_server():
        query = " & ".join(f"'{word}':*" for word in words)
        return first.filter(RawSQL(_MATCHES, [query], BooleanField()))  # noqa: S611  # nosec B611 - a constant
    return first.filter(*(Q(opening__icontains=word) for word in words))
