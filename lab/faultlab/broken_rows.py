"""Mistakes about many rows, refused writes, migrations and searches for names, each with the test that shows it."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_ROWS"]

STORE = "tests/integration/store"

BROKEN_ROWS: tuple[Broken, ...] = (
    Broken(
        "the living are looked for among the dead",
        "a2a_tasks/store/workers.py",
        '    return _see(_present().filter(seen_at__gt=Now() - patience()).order_by("name"))\n',
        '    return [one for one in _see(_present().order_by("name")) if one.alive]\n',
        (),
        f"{STORE}/test_workers.py",
    ),
    Broken(
        "rows of replaced processes stay for a day",
        "a2a_tasks/store/workers.py",
        "    in_vain = row.left_at is not None or row.pk in replaced\n",
        "    in_vain = row.left_at is not None\n",
        (),
        f"{STORE}/test_workers.py",
    ),
    Broken(
        "each scrape reads the gauges itself",
        "a2a_project/shared_read.py",
        "        if read is None or read.done() or",
        "        if read is not None or read is None or",
        (),
        "tests/integration/test_metrics.py",
    ),
    Broken(
        "a slow database counts as away",
        "a2a_project/metrics.py",
        "answered=answered is not None",
        "answered=read is not None",
        (),
        "tests/integration/test_metrics.py",
    ),
    Broken(
        "a process is ready while its writes are refused",
        "a2a_project/health.py",
        '    return "unavailable" if are_writes_refused() else ""\n',
        '    return ""\n',
        (),
        f"{STORE}/test_writability.py",
    ),
    Broken(
        "a migration waits for its locks as long as it takes",
        "a2a_tasks/migrations/_patience.py",
        "                schema.execute(f\"set local lock_timeout = '{LOCK_SECONDS}s'\")\n",
        "",
        (),
        f"{STORE}/test_migrations.py",
    ),
    Broken(
        "an index blocks those that write",
        "a2a_tasks/migrations/_patience.py",
        "schema.add_index(model, index, concurrently=True)",
        "schema.add_index(model, index)",
        (),
        f"{STORE}/test_migrations.py",
    ),
    Broken(
        "an environment announces any agent",
        "a2a_tasks/conf.py",
        '    return slug in slugs or "*" in slugs\n',
        "    return bool(slugs)\n",
        (),
        f"{STORE}/test_versions.py",
    ),
    Broken(
        "late runs that cannot be failed are tried for ever",
        "a2a_tasks/store/versions.py",
        "        _tried[queue] = found[-1][0]\n",
        "        _tried[queue] = 0\n",
        (),
        f"{STORE}/test_versions.py",
    ),
    Broken(
        "the bytes of an erased person stay until the purge",
        "a2a_console/privacy/erasure.py",
        "    for sweep in (functools.partial(sweep_lists, SLICE), functools.partial(files.sweep)):\n",
        "    for sweep in (functools.partial(sweep_lists, SLICE),):\n",
        (),
        "tests/integration/console/privacy/test_erasure.py",
    ),
    Broken(
        "a search for a name reads the whole table",
        "a2a_console/sparse_index.py",
        'cursor.execute("set local enable_seqscan = off; set local enable_indexscan = off")',
        'cursor.execute("set local enable_bitmapscan = off")',
        (),
        "tests/integration/console/privacy/test_searches.py",
    ),
    Broken(
        "an open host serves an address that others reach",
        "a2a_project/open_address.py",
        "        return ipaddress.ip_address(host).is_loopback\n",
        "        return bool(ipaddress.ip_address(host))\n",
        (),
        "lab/server/test_up.py",
    ),
    Broken(
        "parked-runs-are-looked-for-in-any-order",
        "a2a_tasks/store/parking.py",
        '_list_due().order_by("due_at"), ',
        "_list_due(), ",
        (),
        "tests/integration/store/test_costs_of_waiting.py::test_of_callers_whose_clients_are_asked",
    ),
    Broken(
        "each-look-takes-the-same-questions",
        "a2a_tasks/store/call_trees.py",
        "        _Looks.at = news.looked_at\n",
        "",
        (),
        "tests/integration/store/test_costs_of_waiting.py::"
        "test_of_questions_each_is_looked_at_after_a_while",
    ),
    Broken(
        "of-chats-that-begin-alike-the-oldest-goes-on",
        "a2a_tasks/store/backend/sql/find_chats.sql",
        "  order by p.updated_at desc, p.id desc limit 1\n",
        "  order by p.updated_at, p.id limit 1\n",
        (),
        "tests/integration/store/test_chat_prefixes.py::"
        "test_of_many_that_begin_alike_the_newest_one_is_found",
    ),
    Broken(
        "texts-are-quoted-in-python",
        "a2a_tasks/store/backend/sql/append_batches.sql",
        "    %(bodies)b::text[]) as e(n, i, kind, state, body) join held h on h.n = e.n\n",
        "    %(bodies)s::text[]) as e(n, i, kind, state, body) join held h on h.n = e.n\n",
        (),
        "tests/integration/store/backend/test_texts.py::"
        "test_no_message_event_artifact_step_or_memory_is_quoted",
    ),
)
