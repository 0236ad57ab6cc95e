"""Mistakes about what an attempt leaves to the next one, about rows that wait, and about size."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_WAITING"]

SAID_ONCE = (
    "tests/integration/execution/test_said_once.py::"
    "test_a_client_reads_what_one_uninterrupted_attempt_says"
)
STORE = "tests/integration/store"

BROKEN_WAITING: tuple[Broken, ...] = (
    # --- what an attempt leaves to the next one
    Broken(
        "death-that-keeps-what-the-park-counted",
        "a2a_tasks/store/runs.py",
        '        said=0,\n        parked_in="",\n        past=EndSegment(how),\n',
        '        past=EndSegment(how),\n        **({"said": 0, "parked_in": ""} if how != DIED else {}),\n',
        ("text",),
        "told-in-parts",
    ),
    Broken(
        "hand-back-that-keeps-what-the-park-counted",
        "a2a_tasks/store/runs.py",
        '        said=0,\n        parked_in="",\n        past=EndSegment(how),\n',
        '        past=EndSegment(how),\n        **({"said": 0, "parked_in": ""} if how == DIED else {}),\n',
        (),
        SAID_ONCE,
    ),
    Broken(
        "park-after-a-death-that-keeps-the-pieces-of-the-dead-attempt",
        "a2a_tasks/execution/recorder.py",
        "if self._run.begun_before:",
        "if self._run.begun_before and not self._run.said:",
        (),
        "tests/integration/execution/test_said_once.py::"
        "test_a_park_after_a_death_keeps_nothing_of_what_the_dead_attempt_said_later",
    ),
    Broken(
        "append-that-follows-the-pieces-of-a-dead-attempt",
        "a2a_tasks/execution/recorder.py",
        "mended = await self._take_back(mended)",
        "pass",
        ("text",),
        "told-in-parts",
    ),
    Broken(
        "artifact-with-another-id-in-each-attempt",
        "a2a_tasks/agents/turn.py",
        'made = f"{self._seed}/{self._unnamed}" if self._seed else token_hex(8)',
        "made = token_hex(8)",
        (),
        SAID_ONCE,
    ),
    # --- size
    Broken(
        "large-statement-that-may-not-be-idle-while-it-arrives",
        "a2a_tasks/store/backend/sessions.py",
        '"idle_in_transaction_session_timeout": _idle_milliseconds(more),',
        '"idle_in_transaction_session_timeout": _idle_milliseconds(),',
        (),
        "tests/integration/store/test_db.py::TestAnOutage::"
        "test_a_large_statement_has_more_time_to_arrive_and_no_statement_after_it",
    ),
    Broken(
        "large-statement-whose-cut-connections-are-nobodys-fault",
        "a2a_tasks/store/db.py",
        'if state is None and vars(fault).get("size"):',
        "if False:",
        (),
        "tests/integration/store/test_db.py::TestAnOutage::"
        "test_a_large_statement_whose_connection_ends_may_be_the_cause",
    ),
    # --- rows that wait
    Broken(
        "end-of-a-run-that-releases-none",
        "a2a_tasks/store/append.py",
        "        if batch.end:\n            _call_next(batch)\n",
        "",
        (),
        f"{STORE}/test_behind.py::TestRelease::"
        "test_of_the_next_of_a_conversation_follows_every_end",
    ),
    Broken(
        "message-behind-a-run-that-looks-only-once",
        "a2a_tasks/store/accept.py",
        "            look_again(keys.run)\n",
        "            pass\n",
        (),
        f"{STORE}/test_behind.py::TestAtTheSameMoment::test_none_is_forgotten",
    ),
    Broken(
        "messages-behind-others-in-the-queue",
        "a2a_tasks/store/backend/sql/_write_tasks.sql",
        "case when k.behind then {behind} else",
        "case when false then {behind} else",
        (),
        f"{STORE}/test_behind.py::TestTheQueue",
    ),
    Broken(
        "claim-of-more-than-there-are-threads",
        "a2a_tasks/execution/slots.py",
        "return self.room if limit is None else min(self.room, limit() - self._kinds[kind])",
        "return self.room",
        (),
        "tests/integration/execution/test_runner.py::TestRunning::"
        "test_no_more_runs_of_synchronous_agents_are_carried_than_there_are_threads",
    ),
)
