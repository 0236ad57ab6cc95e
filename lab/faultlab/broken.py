"""Broken builds: mistakes a careless engineer could have made, each of which the lab has to find.

A checker that never cries proves nothing. Every row is an exact replacement in one file of the host, the scenario
that shows it, and the invariants of which at least one must be reported. The sound build passes the same scenarios.
"""

from __future__ import annotations

import compileall
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.faultlab.broken_budgets import BROKEN_BUDGETS
from lab.faultlab.broken_doors import BROKEN_DOORS
from lab.faultlab.broken_rows import BROKEN_ROWS
from lab.faultlab.broken_seams import BROKEN_SEAMS
from lab.faultlab.broken_text import BROKEN_TEXT
from lab.faultlab.broken_trees import BROKEN_TREES
from lab.faultlab.broken_waiting import BROKEN_WAITING
from lab.faultlab.broken_wire import BROKEN_WIRE
from lab.faultlab.checker import Violation
from lab.faultlab.lab import QUICK, Episode, Lab
from lab.faultlab.mistake import Broken
from lab.faultlab.scenarios import SCENARIOS
from tests import ROOT
from tests.support.end_with_parent import end_with_parent
from tests.support.selection import is_for_another

__all__ = ["BROKEN", "SOUND", "build", "run_all"]

#: What processes of the host need, and what the stories that are told by pytest do.
COPIED = (
    "a2a_host",
    "a2a_project",
    "a2a_console",
    "a2a_push",
    "a2a_tasks",
    "a2a_frameworks",
    "a2a_grpc",
    "a2a_doors",
    "deploy",
    "docs",
    "examples",
    "lab",
    "tests",
)
FILES = ("manage.py", "pyproject.toml")
#: The exit code of pytest if no test was chosen.
NOTHING_RAN = 5
#: The name of the build in which nothing is replaced.
SOUND = "sound"
#: Episodes until a broken build counts as not caught: some mistakes show only now and then.
TRIES = 4


def build(broken: Broken | None, into: Path) -> Path:
    """Copy the host there, with the mistake in it if one is given. Raises ValueError if it does not fit the code."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(ROOT / name, into / name, ignore=ignore)
    for name in FILES:
        shutil.copy(ROOT / name, into / name)
    if broken is not None:
        path = into / broken.file
        path.write_text(spoilt(broken, path.read_text()))
    compileall.compile_dir(into, quiet=2)
    return into


def spoilt(broken: Broken, text: str) -> str:
    """The text of the file with the mistake in it. Raises ValueError unless its place is there exactly once."""
    if text.count(broken.old) != 1:
        raise ValueError(f"{broken.name}: {text.count(broken.old)} such places in {broken.file}")
    return text.replace(broken.old, broken.new)


# --- the mistakes ---------------------------------------------------------------------------------

#: The number of batches is a second fence: who was away has counted fewer.
FENCE = (
    "from batch b where t.id = b.task and t.run_token = b.token and b.token <> ''"
    " and t.batches = coalesce(b.after, t.batches)"
)
SEEN = "    return seen.number if seen and resumes else None\n"
LEASE = "clock_timestamp() + make_interval(secs => %(lease)s) end,\n    started_at"
BEAT = "select id from a2a_tasks_run where status = 'running' and token = any(%(tokens)b::text[])"
BY_HOST = """select id from a2a_tasks_run where status = 'running' and split_part(worker, ':', 1) in (
    select split_part(worker, ':', 1) from a2a_tasks_run where token = any(%(tokens)b::text[]))"""
ASKING = "            alive = self._extend(active, beats=beats)\n"
BELIEVING = "            self._extend(active, beats=beats)\n            alive = set(active)\n"
KEPT = "StepResult(self._run, name, result, seconds)"
OUTAGES = "lab/outages"
STORE = "tests/integration/store"

BROKEN: tuple[Broken, ...] = (
    *BROKEN_WAITING,
    *BROKEN_BUDGETS,
    *BROKEN_DOORS,
    *BROKEN_ROWS,
    *BROKEN_SEAMS,
    *BROKEN_TEXT,
    *BROKEN_TREES,
    *BROKEN_WIRE,
    # --- the fence
    Broken(
        "append-without-a-fence",
        "a2a_tasks/store/backend/sql/append_batches.sql",
        FENCE,
        "from batch b where t.id = b.task",
        ("I7", "I2"),
        "zombie",
    ),
    Broken(
        "append-fenced-by-the-status-of-the-run",
        "a2a_tasks/store/backend/sql/append_batches.sql",
        FENCE,
        "from batch b join a2a_tasks_run r on r.id = b.run where t.id = b.task and r.status = 'running'",
        ("I7", "I2"),
        "zombie",
    ),
    Broken(
        "step-without-a-fence",
        "a2a_tasks/store/backend/sql/keep_steps.sql",
        "  where t.run_token = i.token and i.token <> '' order by t.id for update of t{skip}\n",
        "  order by t.id for update of t{skip}\n",
        ("I1", "I8"),
        "zombie-in-a-step",
    ),
    Broken(
        "token-is-the-name-of-the-host",
        "a2a_tasks/store/backend/sql/claim_runs.sql",
        "%(mark)s || replace(gen_random_uuid()::text, '-', '') as token",
        "split_part(%(worker)s, ':', 1) as token",
        ("I7", "I9"),
        "kill-among-many",
    ),
    # --- leases
    Broken(
        "no-lease-before-the-first-heartbeat",
        "a2a_tasks/store/backend/sql/claim_runs.sql",
        LEASE,
        "clock_timestamp() end,\n    started_at",
        ("I7",),
        "calm",
    ),
    Broken(
        "endless-lease-before-the-first-heartbeat",
        "a2a_tasks/store/backend/sql/claim_runs.sql",
        LEASE,
        "'infinity'::timestamptz end,\n    started_at",
        ("I9",),
        "kill-at-once",
    ),
    Broken(
        "heartbeat-by-the-name-of-the-host",
        "a2a_tasks/store/backend/sql/extend_leases.sql",
        BEAT,
        BY_HOST,
        ("I9",),
        "kill-among-many",
    ),
    Broken(
        "heartbeat-that-believes-it-still-holds",
        "a2a_tasks/execution/leases.py",
        ASKING,
        BELIEVING,
        ("I15",),
        "cancel-without-hints",
    ),
    Broken(
        "rescue-without-a-second-look",
        "a2a_tasks/store/runs.py",
        "_queue_again(lost.filter(pk__in=keys), max_attempts, watched)",
        "_queue_again(Run.objects.filter(status='running', pk__in=keys), max_attempts, watched)",
        ("I7",),
        "frozen-rescuer",
    ),
    Broken(
        "rescue-that-leaves-the-token",
        "a2a_tasks/store/runs.py",
        '    Task.objects.filter(pk__in=[run.task_id for run in again]).update(run_token="")\n',
        "",
        ("I7",),
        "no-room",
    ),
    # --- claiming and attempts
    Broken(
        "claim-without-a-lock",
        "a2a_tasks/store/backend/sql/claim_runs.sql",
        "  order by r.{first}, r.id limit %(limit)s\n  for update of r, t skip locked\n",
        "  order by r.{first}, r.id limit %(limit)s\n",
        ("I7",),
        "crowd",
    ),
    Broken(
        "claim-of-two-runs-of-a-task",
        "a2a_tasks/store/backend/sql/_is_behind_another.sql",
        """(exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
      and e.status in ('queued', 'running'))
    or """,
        "(",
        (),
        "tests/integration/store/test_behind.py::TestRelease::test_is_waited_for_also_by_those_that_an_earlier_release_has_put_into_the_queue",
    ),
    Broken(
        "attempts-that-are-not-counted",
        "a2a_tasks/store/backend/sql/claim_runs.sql",
        "attempt = r.attempt + case when d.ended then 0 else 1 end,",
        "attempt = 1,",
        ("I7",),
        "kill",
    ),
    Broken(
        "poison-tried-for-ever",
        "a2a_tasks/store/quarantine.py",
        "run.deaths += 1",
        "run.deaths += 0",
        ("I7",),
        "poison",
    ),
    # --- the log
    Broken(
        "numbers-with-gaps",
        "a2a_tasks/store/backend/sql/append_batches.sql",
        "last_event = t.last_event + b.count,",
        "last_event = t.last_event + b.count + 1,",
        ("I4",),
        "calm",
    ),
    Broken(
        "announced-before-the-commit",
        "a2a_tasks/store/append.py",
        "def append_many(",
        "from django.db import transaction\n\n\n@transaction.atomic\ndef append_many(",
        ("I5",),
        "commit-undone",
    ),
    Broken(
        "artifact-folded-backwards",
        "a2a_tasks/store/folding.py",
        'return events.order_by("number")',
        'return events.order_by("-number")',
        ("fold",),
        "calm",
    ),
    Broken(
        "task-read-in-two-moments",
        "a2a_tasks/store/tasks.py",
        "growing(row.key, growing, through=row.last_event)",
        "growing(row.key, growing)",
        ("fold", "I5"),
        "glances",
    ),
    # --- cancelling
    Broken(
        "canceled-said-twice",
        "a2a_tasks/store/event_log.py",
        "    return record(task, EventKind.STATUS, status_body(state, at, message), run=run)",
        "    record(task, EventKind.STATUS, status_body(state, at, message), run=run)\n"
        "    return record(task, EventKind.STATUS, status_body(state, at, message), run=run)",
        ("I2",),
        "cancel",
    ),
    Broken(
        "canceled-told-and-not-saved",
        "a2a_tasks/store/event_log.py",
        '("last_event", "state", "status_at", "status_message", "status_text", "run_token")',
        '("last_event", "run_token")',
        ("I15", "fold"),
        "cancel",
    ),
    Broken(
        "cancel-that-leaves-the-token",
        "a2a_tasks/store/event_log.py",
        '        task.run_token = ""\n        HandedSecret',
        "        HandedSecret",
        ("I17",),
        "cancel",
    ),
    Broken(
        "cancel-that-leaves-the-run",
        "a2a_tasks/store/cancel.py",
        "    active.update(status=RunStatus.CANCELED,",
        "    active.filter(status=RunStatus.QUEUED).update(status=RunStatus.CANCELED,",
        ("I15",),
        "cancel-without-hints",
    ),
    Broken(
        "cancel-of-what-has-ended",
        "a2a_tasks/store/cancel.py",
        "    if state in TERMINAL:\n        raise TaskNotCancelable",
        "    if state is TaskState.CANCELED:\n        raise TaskNotCancelable",
        ("I17", "I2"),
        "cancel-the-ended",
    ),
    # --- streams
    Broken(
        "cursor-ignored",
        "a2a_tasks/operations/subscribe_to_task.py",
        SEEN,
        "    return None\n",
        ("I6",),
        "cuts",
    ),
    Broken(
        "cursor-too-late",
        "a2a_tasks/operations/subscribe_to_task.py",
        SEEN,
        "    return min(seen.number + 1, found.last_event) if seen and resumes else None\n",
        ("I6",),
        "cuts",
    ),
    Broken(
        "cursor-too-early",
        "a2a_tasks/operations/subscribe_to_task.py",
        SEEN,
        "    return max(seen.number - 1, 0) if seen and resumes else None\n",
        ("I6",),
        "cuts",
    ),
    Broken(
        "stream-that-ends-with-any-status",
        "a2a_tasks/operations/subscribe_to_task.py",
        "until=lambda event: event.state in TERMINAL",
        "until=lambda event: event.state is not None",
        ("I6",),
        "cuts",
    ),
    Broken(
        "tail-from-where-the-log-is-now",
        "a2a_tasks/streaming/stream.py",
        "return cls(await hub().open(task, known=after, fresh=fresh), after, until)",
        "feed = await hub().open(task, known=after, fresh=fresh)\n        return cls(feed, feed.end, until)",
        ("I6",),
        "cuts",
    ),
    Broken(
        "pushed-events-with-a-gap",
        "a2a_tasks/streaming/event_buffer.py",
        "if event.number == self.end + 1:",
        "if event.number > self.end:",
        ("I6",),
        "streams-without-hints",
    ),
    Broken(
        "streams-that-do-not-poll",
        "a2a_tasks/streaming/event_buffer.py",
        "await asyncio.sleep(conf.POLL_SECONDS)",
        "await asyncio.sleep(86400)",
        ("I6",),
        "streams-without-hints",
    ),
    # --- steps
    Broken(
        "step-begun-by-who-was-frozen",
        "a2a_tasks/execution/journal.py",
        "while not self._holds():",
        "while False:",
        ("I8",),
        "zombie-before-a-step",
    ),
    Broken(
        "step-kept-after-it-was-given",
        "a2a_tasks/agents/steps.py",
        "                await self._journal.keep(self.name, kept)\n",
        "                self._keeping = asyncio.ensure_future(self._journal.keep(self.name, kept))\n",
        ("I8",),
        "step-unkept",
    ),
    Broken(
        "step-never-kept",
        "a2a_tasks/execution/journal.py",
        "functools.partial(steps.keep_batched, step)",
        "functools.partial(asyncio.sleep, 0, True)",
        ("I8",),
        "kill",
    ),
    Broken(
        "step-kept-for-its-attempt",
        "a2a_tasks/execution/journal.py",
        KEPT,
        'StepResult(self._run, f"{name}/{self._run.attempt}", result, seconds)',
        ("I8",),
        "kill",
    ),
    # --- parked runs
    Broken(
        "park-without-a-fence",
        "a2a_tasks/store/parking.py",
        'filter(pk=run.task, run_token=run.token).exclude(run_token="")',
        "filter(pk=run.task)",
        (),
        f"{STORE}/test_parking.py::TestParking::test_is_refused_to_who_lost_its_lease",
    ),
    Broken(
        "parked-run-that-says-everything-again",
        "a2a_tasks/execution/recorder.py",
        "self.said, self.repeats = 0, run.said",
        "self.said, self.repeats = 0, 0",
        (),
        "tests/integration/execution/test_parking.py::"
        "test_an_agent_that_sleeps_long_holds_no_slot_and_goes_on_where_it_was",
    ),
    Broken(
        "parked-run-that-lets-its-conversation-pass",
        "a2a_tasks/store/parking.py",
        "        status=RunStatus.QUEUED,\n",
        '        status="parked",\n',
        (),
        f"{STORE}/test_parking.py::TestParking::test_holds_back_later_messages_of_its_task_and_of_its_conversation",
    ),
    # --- accepting
    Broken(
        "accepted-before-it-is-durable",
        "a2a_tasks/store/backend/statements.py",
        "        cursor.execute(numbered, given)\n        return cursor.fetchall()\n",
        '        cursor.execute("set synchronous_commit to off")\n'
        "        cursor.execute(numbered, given)\n        return cursor.fetchall()\n",
        ("I1",),
        "database-crash",
    ),
    Broken(
        "key-kept-after-the-task",
        "a2a_tasks/operations/conversation.py",
        "    accepted = await accept(request, call, key)\n",
        "    accepted = await accept(request, call, None)\n"
        "    if key is not None:\n        from a2a_tasks.store.idempotency import remember\n"
        "        await run_in_thread(remember(key), accepted.task)\n",
        ("I16",),
        "sent-twice",
    ),
    Broken(
        "key-never-kept",
        "a2a_tasks/operations/accept_message.py",
        "companions=(*companions, remember(key)) if key else companions,",
        "companions=companions,",
        ("I16",),
        "sent-twice",
    ),
    # --- the database and Redis away
    Broken(
        "database-away-is-an-internal-error",
        "a2a_tasks/store/db.py",
        "        raise _away(fault, undone=_sqlstate(fault) in CERTAIN) from fault\n",
        "        raise\n",
        ("I17",),
        "database-away",
    ),
    Broken(
        "turned-away-without-a-word-when-to-come-again",
        "a2a_tasks/bindings/errors.py",
        '        return [(b"retry-after", fault.metadata.get("retry_after", "1").encode())]\n',
        "        return []\n",
        ("I17",),
        "database-away",
    ),
    Broken(
        "workers-that-do-not-poll",
        "a2a_tasks/execution/runner.py",
        "async with asyncio.timeout(float(conf.POLL_SECONDS)):",
        "async with asyncio.timeout(86400):",
        ("I1", "I19"),
        "streams-without-hints",
    ),
    # --- size, neighbours and outages: what the lab once missed
    Broken(
        "pieces-that-nobody-assembles",
        "a2a_tasks/store/folding.py",
        "    transaction.on_commit(begin)\n",
        "    assert begin\n",
        (),
        f"{OUTAGES}/test_size.py::test_one_of_very_many_pieces_ends_and_can_be_read",
    ),
    Broken(
        "batches-without-a-bound-in-bytes",
        "a2a_tasks/store/batched_call.py",
        "        return max(1, sum(size <= MAX_BYTES for size in sizes))\n",
        "        return sum(1 for _ in sizes)\n",
        (),
        f"{STORE}/test_batched_call.py::TestGroup::test_a_flush_of_several_is_bounded_in_bytes",
    ),
    Broken(
        "deaths-counted-against-neighbours",
        "a2a_tasks/store/quarantine.py",
        "    else:  # a run that died without other runs stays in quarantine, however far it got\n        run.deaths += 1\n",
        "    run.deaths += 1\n",
        (),
        f"{OUTAGES}/test_neighbours.py::test_a_task_that_kills_its_process_fails_alone",
    ),
    Broken(
        "commit-cancelled",
        "a2a_tasks/store/backend/sessions.py",
        "        _door.give_up(session.pgconn)\n",
        "        session.cancel()\n        _door.give_up(session.pgconn)\n",
        (),
        f"{OUTAGES}/test_standby.py::test_without_its_standby_nothing_is_acknowledged",
    ),
    Broken(
        "no-grace-after-an-outage",
        "a2a_tasks/execution/runner.py",
        "        self._patient_until = now + float(conf.LEASE_SECONDS)\n",
        "        self._patient_until = 0.0\n",
        (),
        "tests/integration/execution/test_runner.py::TestLeases::test_for_a_lease_after_an_outage_nothing_is_rescued",
    ),
    Broken(
        "repetition-not-recognised",
        "a2a_tasks/store/backend/sql/append_batches.sql",
        " and t.batches = coalesce(b.after, t.batches)\n",
        "\n",
        (),
        f"{OUTAGES}/test_pgbouncer.py::test_an_answer_that_is_lost_between_pool_and_server_writes_nothing_twice",
    ),
    Broken(
        "heartbeat-that-waits-for-a-locked-row",
        "a2a_tasks/store/backend/sql/extend_leases.sql",
        "order by id\n  for update{skip}\n)\nupdate a2a_tasks_run r set lease_until",
        "order by id\n  for update\n)\nupdate a2a_tasks_run r set lease_until",
        ("I7",),
        "one-row-locked",
    ),
    Broken(
        "orphans-of-a-busy-worker",
        "a2a_tasks/store/backend/sql/claim_runs.sql",
        """    and not exists (select from a2a_tasks_worker o where o.seen_at > statement_timestamp() - make_interval(secs => %(unseen)s)
      and o.queues ? %(queue)s and o.agents ? w.agent)
""",
        "",
        ("I1",),
        "two-app-sets",
    ),
    Broken(
        "webhooks-of-any-size",
        "a2a_push/store/cursor.py",
        "config.task, int(conf.WEBHOOK_MAX_BYTES)\n"
        "    key = webhook_id(config.pk, task.pk, task.public_id, step.through)\n",
        "config.task, 2**40\n    key = webhook_id(config.pk, task.pk, task.public_id, step.through)\n",
        (),
        f"{OUTAGES}/test_large_webhooks.py::test_small_webhooks_arrive_while_large_ones_of_another_client_are_pending",
    ),
    Broken(
        "feeds-bounded-by-number-alone",
        "a2a_tasks/streaming/event_buffer.py",
        "if dropped >= excess and self._bytes <= room:",
        "if dropped >= excess:",
        (),
        "lab/server/test_unread_streams.py::test_an_unread_stream_of_200_mb_costs_a_few",
    ),
    Broken(
        "one-query-for-each-claimed-run",
        "a2a_tasks/store/backend/postgres.py",
        "for artifact_id, position, growing in row.artifacts or ()",
        'for artifact_id, position, growing in Run._meta.apps.get_model("a2a_tasks", "Artifact")'
        '.objects.filter(task_id=row.task).values_list("artifact_id", "position", "body")',
        (),
        f"{OUTAGES}/test_outages.py::test_with_the_database_60_ms_away_one_death_costs_100_runs_one_attempt",
    ),
)


# --- finding them ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one build in one scenario."""

    episode: Episode
    build: str
    scenario: str
    caught_by: str


def run_all(*, labs: int = 2, only: str = "", seed: int = 1) -> list[Episode]:
    """Every broken build in its scenario, and the sound one in all of them, on so many labs at once.

    An episode of a broken build has a violation if nothing was found. Tells each as it comes, and the table at the end.
    """
    jobs = [
        (row.name, row.scenario) for row in BROKEN if re.search(only, f"{row.name} {row.scenario}")
    ]
    stories = {row.scenario for row in BROKEN if _is_story(row.scenario)}
    jobs += [
        (SOUND, name)
        for name in [*SCENARIOS, *sorted(stories)]
        if re.search(only, f"{SOUND} {name}")
    ]
    spawn = multiprocessing.get_context("spawn")
    results, begun = [], time.monotonic()
    with ProcessPoolExecutor(labs, mp_context=spawn, initializer=end_with_parent) as pool:
        doing = [pool.submit(_play, name, scenario, seed) for name, scenario in jobs]
        for done in as_completed(doing):
            results.append(done.result())
            _tell(results[-1])
    _keep(results, labs=labs, seconds=time.monotonic() - begun)
    return [result.episode for result in results]


def _play(name: str, scenario: str, seed: int) -> Result:
    """One build in one scenario; in another process, so everything is found by name."""
    try:
        return _played(name, scenario, seed)
    except Exception:  # noqa: BLE001 - the lab itself broke: that is a failure, too
        broke = [Violation("lab", traceback.format_exc()[-3000:], ())]
        told = Episode(name=name, seed=seed, seconds=0, tasks=0, violations=broke, recoveries=[])
        return Result(told, name, scenario, "")


def _played(name: str, scenario: str, seed: int) -> Result:
    broken = next((row for row in BROKEN if row.name == name), None)
    play = _caught if broken else _sound
    with tempfile.TemporaryDirectory(prefix="a2a-build-") as directory:
        source = build(broken, Path(directory) / "build")
        if _is_story(scenario):
            return _told(source, broken, scenario)
        with Lab(SCENARIOS[scenario].plan(source)) as lab:
            return play(lab, broken, scenario, seed)


def _is_story(scenario: str) -> bool:
    return scenario.startswith(("tests/", "lab/"))


def _run_story(source: Path, story: str, backend: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "TEST_BACKEND": backend, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", story]
    return subprocess.run(
        command, cwd=source, env=environ, capture_output=True, text=True, check=False
    )


def _told(source: Path, broken: Broken | None, story: str) -> Result:
    """Run one test of the build. That of a broken one has to fail, and not by an error of pytest's."""
    begun = time.monotonic()
    module = (source / story.partition("::")[0]).read_text()
    first = "sqlite" if is_for_another(module, "stack", thorough=False) else "stack"
    ran = _run_story(source, story, first)
    # Some tests of a file are for the other backend: there they may notice what these did not.
    if ran.returncode == NOTHING_RAN or (broken is not None and ran.returncode == 0):
        ran = _run_story(source, story, "stack" if first == "sqlite" else "sqlite")
    caught = broken is not None and ran.returncode == 1
    wrong = [] if caught or (broken is None and ran.returncode == 0) else [ran.stdout[-3000:]]
    episode = Episode(
        name=broken.name if broken else SOUND,
        seed=0,
        seconds=time.monotonic() - begun,
        tasks=0,
        violations=[Violation("broken", text, ()) for text in wrong],
        recoveries=[],
    )
    return Result(episode, episode.name, story, "its test" if caught else "")


def _sound(lab: Lab, _: Broken | None, scenario: str, seed: int) -> Result:
    episode = SCENARIOS[scenario].play(lab, f"{SOUND} {scenario}", seed)
    return Result(episode, SOUND, scenario, "")


def _caught(lab: Lab, broken: Broken | None, scenario: str, seed: int) -> Result:
    assert broken is not None
    for n in range(seed, seed + TRIES):
        episode = SCENARIOS[scenario].play(lab, f"{broken.name} {scenario}", n)
        found = [v for v in episode.violations if v.invariant in broken.breaks]
        if found:
            episode.violations.clear()
            return Result(episode, broken.name, scenario, str(found[0].invariant))
    others = ", ".join(sorted({v.invariant for v in episode.violations})) or "nothing"
    missed = Violation("broken", f"{broken.name} was not caught; found: {others}", ())
    episode.violations.insert(0, missed)
    return Result(episode, broken.name, scenario, "")


def _row(result: Result) -> str:
    verdict = result.caught_by or ("VIOLATED" if result.episode.violations else "passed")
    seconds = f"{result.episode.seconds:5.1f} s"
    return (
        f"{result.build:46} {result.scenario:22} {verdict:9} {seconds} seed {result.episode.seed}"
    )


def _tell(result: Result) -> None:
    lines = [_row(result), *(f"    {v}"[:2000] for v in result.episode.violations[:5])]
    sys.stderr.write("\n".join(lines) + "\n")


def _keep(results: Sequence[Result], *, labs: int, seconds: float) -> None:
    """What is kept of a build stays until it is played again."""
    path = ROOT / "var" / "faults" / "broken.json"
    kept: dict[str, Any] = {"seconds": 0, "builds": []}
    if path.exists():
        kept = json.loads(path.read_text())
    anew = {(result.build, result.scenario) for result in results}
    builds = [one for one in kept["builds"] if (one["build"], one["scenario"]) not in anew]
    builds += [
        {
            "build": result.build,
            "scenario": result.scenario,
            "caught by": result.caught_by,
            "seconds": round(result.episode.seconds, 1),
            "seed": result.episode.seed,
            "violations": [str(v) for v in result.episode.violations],
            "episode": asdict(result.episode),
        }
        for result in results
    ]
    told = {
        "part": "broken",
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "command": "python -m lab.faultlab broken",
        "labs": labs,
        "lease": float(QUICK["A2A_LEASE_SECONDS"]),
        "seconds": round(seconds) + kept["seconds"],
        "episodes": [one["episode"] for one in builds],
        "builds": builds,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, default=str))
    sys.stderr.write("\n".join(["", *sorted(map(_row, results)), ""]))
