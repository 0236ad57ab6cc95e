"""The checker believes nothing: an episode in which all went well passes, and whatever is spoilt in it is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import pytest

from lab.faultlab.checker import INVARIANTS, Invariant, check, findings, recoveries
from lab.faultlab.dump import Dump, MessageRow, StepRow
from lab.faultlab.evidence import Evidence
from lab.faultlab.folding import ARTIFACT
from lab.faultlab.story import Story, clean

pytestmark = pytest.mark.backend("sqlite")


@dataclass(frozen=True)
class Spoilt:
    """A mishap, the invariant it breaks, and some words of what the checker says."""

    invariant: str
    words: str
    happens: Callable[[Story], None]

    def __str__(self) -> str:
        return self.happens.__name__


SPOILT: list[Spoilt] = []


def breaks(invariant: str, words: str) -> Callable[[Callable[[Story], None]], None]:
    """Have the mishap tested: the checker must say so."""

    def collect(happens: Callable[[Story], None]) -> None:
        SPOILT.append(Spoilt(invariant, words, happens))

    return collect


@pytest.fixture(scope="module")
def well() -> Story:
    """An episode in which all went well."""
    return clean()


def test_an_episode_in_which_all_went_well_passes(well: Story) -> None:
    assert well.violations() == []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mishap" in metafunc.fixturenames:
        metafunc.parametrize("mishap", SPOILT, ids=str)


def test_is_found(well: Story, mishap: Spoilt) -> None:
    story = well.copy()
    mishap.happens(story)
    found = [(v.invariant, v.text) for v in story.violations()]
    assert any(name == mishap.invariant and mishap.words in text for name, text in found), found


def test_is_found_with_a_witness_that_is_short(well: Story, mishap: Spoilt) -> None:
    story = well.copy()
    mishap.happens(story)
    told = [v for v in story.violations() if mishap.words in v.text]
    least = 0 if mishap.invariant == "checkable" or "could not" in mishap.words else 1
    assert all(least <= len(v.witness) <= 4 for v in told), told


@pytest.mark.parametrize("invariant", [function for _, function in INVARIANTS])
def test_every_invariant_has_a_mishap_of_its_own(well: Story, invariant: Invariant) -> None:
    own = [mishap for mishap in SPOILT if "could not" not in mishap.words]
    assert any(_tells(well, mishap, invariant) for mishap in own)


def _tells(well: Story, mishap: Spoilt, invariant: Invariant) -> bool:
    story = well.copy()
    mishap.happens(story)
    evidence = Evidence(story.history, story.ledger, story.dump(), story.limits)
    return any(mishap.words in text for text, _ in findings(invariant, evidence))


# --- what cannot be checked -------------------------------------------------------------------------


@breaks("checkable", "no history")
def an_episode_without_a_history(story: Story) -> None:
    story.history.clear()


@breaks("checkable", "no tasks")
def a_dump_without_tasks(story: Story) -> None:
    for table in story.tables():
        table.clear()


@breaks("checkable", "no client got anything accepted")
def a_history_in_which_nothing_was_accepted(story: Story) -> None:
    story.history[:] = [r for r in story.history if r.what != "accepted"]


@breaks("I5", "could not be checked")
def a_row_that_is_no_json(story: Story) -> None:
    story.change(story.log("steps")[1], body="{")


# --- I1: nothing that was accepted is lost ------------------------------------------------------------


def fail_a_careful_task(story: Story, pid: int) -> None:
    """A careful task begins in that process, and fails."""
    story.now = 40
    story.send("k5", "careful", "careful")
    story.agent("began", "careful", 1, run=None, pid=pid, agent="lab-careful")
    story.status("careful", "WORKING")
    story.status("careful", "FAILED")


@breaks("I1", "careful (careful) was left TASK_STATE_FAILED")
def a_task_failed_whose_process_was_well(story: Story) -> None:
    fail_a_careful_task(story, pid=14)


def test_a_task_may_fail_that_must_not_act_twice_and_whose_process_died(well: Story) -> None:
    story = well.copy()
    fail_a_careful_task(story, pid=13)
    story.client("process", name="worker2", pid=13, event="died", code=-9)
    assert not story.violations()


def test_a_task_may_fail_whose_agent_had_not_begun_when_its_process_froze(well: Story) -> None:
    story = well.copy()
    story.now = 40
    story.send("k5", "careful", "careful")
    story.client("fault", name="worker.claimed", process="worker2", pid=13, action="stop")
    story.status("careful", "FAILED")
    assert not [v for v in story.violations() if v.invariant == "I1"]


@breaks("I1", "does not exist")
def an_accepted_task_is_gone(story: Story) -> None:
    story.drop(story.task("forever"))


@breaks("I1", "was left TASK_STATE_WORKING")
def a_task_never_ends(story: Story) -> None:
    story.drop(story.log("steps")[-1])
    story.change(story.task("steps"), state="TASK_STATE_WORKING", last_event=6)


@breaks("I1", "was left TASK_STATE_FAILED")
def a_task_fails_without_a_reason(story: Story) -> None:
    story.change(story.task("steps"), state="TASK_STATE_FAILED")


@breaks("I1", "was left TASK_STATE_INPUT_REQUIRED")
def a_task_asks_that_should_not(story: Story) -> None:
    story.change(story.task("steps"), state="TASK_STATE_INPUT_REQUIRED")


@breaks("I1", "nobody had asked for it")
def a_task_is_cancelled_that_nobody_wanted_to_cancel(story: Story) -> None:
    for what in ("cancelling", "cancelled"):
        story.untell(story.record(what))


# --- I2, I3, I4: the log ----------------------------------------------------------------------------------


@breaks("I2", "ended 2 times")
def a_task_ends_twice(story: Story) -> None:
    story.status("steps", "COMPLETED")


@breaks("I2", "went on after its end")
def a_task_says_something_after_its_end(story: Story) -> None:
    story.piece("steps", "a2:2;", append=True)


@breaks("I2", "its log says otherwise")
def a_task_has_ended_without_an_event(story: Story) -> None:
    story.change(story.task("ask"), state="TASK_STATE_FAILED")
    story.drop(story.log("ask")[-1])


@breaks("I3", "from TASK_STATE_COMPLETED to TASK_STATE_WORKING")
def a_completed_task_works_on(story: Story) -> None:
    story.status("steps", "WORKING")


@breaks("I3", "to TASK_STATE_SUBMITTED")
def a_working_task_is_submitted_again(story: Story) -> None:
    story.change(story.log("steps")[2], state="TASK_STATE_SUBMITTED")


@breaks("I4", "event 3 of steps is missing")
def an_event_is_missing(story: Story) -> None:
    story.drop(story.log("steps")[2])


@breaks("I4", "event 4 of steps is missing")
def an_event_has_the_number_of_another(story: Story) -> None:
    story.change(story.log("steps")[3], number=3)


@breaks("I4", "counts 8 events and has 6")
def a_task_counts_more_events_than_it_has(story: Story) -> None:
    story.change(story.task("steps"), last_event=8)


@breaks("I4", "belongs to no task")
def an_event_is_of_no_task(story: Story) -> None:
    story.change(story.log("steps")[-1], task=99)


# --- I5: what was seen is in the log ---------------------------------------------------------------------------


@breaks("I5", "was shown and is not in the log")
def a_client_saw_an_event_that_was_never_committed(story: Story) -> None:
    seen = story.record("frame", stream="s", id=6)
    story.retell(seen, id=7)


@breaks("I5", "otherwise than it was logged")
def a_client_saw_other_words_than_were_logged(story: Story) -> None:
    seen = story.record("frame", stream="s", id=4)
    story.retell(seen, body={**seen["body"], "append": True})


@breaks("I5", "otherwise than it was logged")
def a_client_saw_an_event_under_the_number_of_another(story: Story) -> None:
    story.retell(story.record("frame", stream="s", id=3), id=2)


@breaks("I5", "otherwise than it was at event 1")
def a_client_was_shown_the_task_as_it_was_later(story: Story) -> None:
    seen = story.record("frame", stream="s", kind="task")
    story.retell(seen, body=story.view("steps"))


@breaks("I5", "which is not in the log")
def a_client_was_shown_the_task_as_it_will_be(story: Story) -> None:
    story.retell(story.record("frame", stream="s", kind="task"), id=7)


@breaks("I5", "which does not exist")
def a_client_saw_events_of_no_task(story: Story) -> None:
    story.retell(story.record("frame", stream="s", id=4), task="nobody")


@breaks("I5", "a Task was shown")
def a_client_was_shown_no_task_of_ours(story: Story) -> None:
    story.retell(story.record("frame", stream="s", kind="task"), task="nobody")


@breaks("I5", "nowhere kept")
def a_client_got_a_message_that_is_not_kept(story: Story) -> None:
    story.client("frame", stream="m", task=None, id=1, kind="message", body={"messageId": "m"})


@breaks("I5", "another error")
def a_stream_told_an_internal_error(story: Story) -> None:
    body = {"error": {"code": 500, "message": "Internal error"}}
    story.client("frame", stream="s", task="None", id=3, kind="error", body=body)


def test_a_stream_may_end_with_the_news_that_the_host_is_overloaded(well: Story) -> None:
    story = well.copy()
    body = {"error": {"code": 503, "message": "Try again later"}}
    story.client("frame", stream="s", task="None", id=3, kind="error", body=body)
    assert story.violations() == []


def test_a_message_that_is_kept_may_be_shown(well: Story) -> None:
    story = well.copy()
    body = {"messageId": "m"}
    story.client("frame", stream="m", task=None, id=1, kind="message", body=body)
    story.messages.append(MessageRow(task=7, number=2, role="ROLE_AGENT", body=json.dumps(body)))
    assert story.violations() == []


# --- I6: streams ----------------------------------------------------------------------------------------------


@breaks("I6", "after event 3 came 5 instead of 4")
def a_stream_left_out_an_event(story: Story) -> None:
    story.untell(story.record("frame", stream="s", id=4))


@breaks("I6", "after event 4 came 4 instead of 5")
def a_stream_said_an_event_twice(story: Story) -> None:
    seen = story.record("frame", stream="s", id=4)
    story.history.insert(story.history.index(seen), seen)


@breaks("I6", "after event 2 came 4 instead of 3")
def a_stream_turned_two_events_round(story: Story) -> None:
    story.retell(story.record("frame", stream="s", id=3), id=-1)
    story.retell(story.record("frame", stream="s", id=4), id=3)
    story.retell(story.record("frame", stream="s", id=-1), id=4)


@breaks("I6", "after event 3 came 2 instead of 5")
def a_resumed_stream_began_too_early(story: Story) -> None:
    story.retell(story.record("frame", stream="qq"), id=2)


@breaks("I6", "after event 5 came 7 instead of 6")
def a_resumed_stream_began_too_late(story: Story) -> None:
    story.untell(story.record("frame", stream="qqq", id=6))


@breaks("I6", "was shown the Task")
def a_client_with_a_cursor_was_shown_the_task(story: Story) -> None:
    first = story.record("frame", stream="s", kind="task")
    story.retell(story.record("frame", stream="qq"), kind="task", body=first["body"], task="ask")


@breaks("I6", "that are there")
def events_were_called_removed_that_were_not(story: Story) -> None:
    seen = story.record("frame", stream="qqq", id=6)
    story.history.insert(
        story.history.index(seen), replace(seen, what="notice", said={"stream": "qqq", "before": 6})
    )


@breaks("I6", "ended before its task did")
def a_stream_ended_too_soon(story: Story) -> None:
    story.untell(story.record("frame", stream="s", id=6))


@breaks("I6", "stood still")
def a_stream_never_told_the_end(story: Story) -> None:
    story.untell(story.record("frame", stream="s", id=6))
    story.untell(story.record("closed", stream="s"))


@breaks("I6", "stood still")
def a_stream_was_given_up_that_never_told_the_end(story: Story) -> None:
    story.untell(story.record("frame", stream="s", id=6))
    story.retell(story.record("closed", stream="s"), how="cut", later=15)


def test_a_frozen_process_may_leave_its_streams_waiting(well: Story) -> None:
    story = well.copy()
    a_stream = story.record("opened", stream="s")["process"]
    story.untell(story.record("frame", stream="s", id=6))
    story.retell(story.record("closed", stream="s"), how="cut", later=15)
    story.client("fault", name="x", process=a_stream, pid=1, action="stop")
    assert story.violations() == []


def test_a_stream_may_end_early_when_its_process_does(well: Story) -> None:
    story = well.copy()
    story.untell(story.record("frame", stream="s", id=6))
    story.client("fault", name="web1", process="web1", pid=1, action="term")
    assert story.violations() == []


# --- I7: attempts -------------------------------------------------------------------------------------------------


@breaks("I7", "attempt 1 wrote after attempt 2")
def a_worker_that_lost_its_run_wrote(story: Story) -> None:
    story.piece("steps", "a1:9;", append=True)


@breaks("I7", "attempt 1 wrote after attempt 2 began")
def a_worker_that_lost_its_run_wrote_before_its_successor_spoke(story: Story) -> None:
    event = story.log("steps")[1]
    story.change(event, created_at=event.created_at + 7.95)
    story.retell(story.record("began", attempt=2), later=-0.1)


@breaks("I7", "has no such attempt")
def an_attempt_spoke_that_was_not_counted(story: Story) -> None:
    story.change(story.run("steps"), attempt=1)


@breaks("I7", "more attempts than it counts")
def an_attempt_began_that_was_not_counted(story: Story) -> None:
    story.retell(story.record("began", task="ask"), attempt=2)


@breaks("I7", "attempt 1 died and began again")
def a_death_was_not_counted(story: Story) -> None:
    story.retell(story.record("began", attempt=2), attempt=1)


@breaks("I7", "nobody had been hurt")
def a_run_was_taken_from_a_process_that_lived(story: Story) -> None:
    story.limits = replace(story.limits, steady=True)
    story.untell(story.record("fault"))


@breaks("I7", "held by no running run")
def a_task_kept_the_token_of_a_dead_process(story: Story) -> None:
    story.client("held", task="steps", state="TASK_STATE_WORKING")


@breaks("I7", "died alone 4 times of 3")
def a_run_was_tried_for_ever(story: Story) -> None:
    story.change(
        story.run("steps"),
        attempt=4,
        error="".join(f"Attempt {n} on box:{n} died: its lease ended.\n" for n in range(1, 5)),
    )


def test_on_a_steady_machine_who_was_hurt_loses_its_runs(well: Story) -> None:
    story = well.copy()
    story.limits = replace(story.limits, steady=True)
    assert story.violations() == []


def test_on_a_steady_machine_a_database_away_loses_runs(well: Story) -> None:
    story = well.copy()
    story.limits = replace(story.limits, steady=True)
    story.retell(story.record("fault"), process="postgres", pid=None)
    assert story.violations() == []


def test_an_attempt_handed_back_in_order_may_begin_again(well: Story) -> None:
    story = well.copy()
    story.ledger.append(
        replace(
            story.record("began", task="ask"),
            said={"task": "ask", "attempt": 1, "run": None, "pid": 13, "agent": "lab-ask"},
        )
    )
    assert story.violations() == []


def test_every_turn_counts_its_attempts_from_one(well: Story) -> None:
    story = well.copy()
    first = story.runs[1]
    story.change(first, attempt=2)
    story.retell(story.record("began", task="ask"), attempt=2)
    event = story.log("ask")[2]
    story.change(event, body=event.body.replace("a1:", "a2:"))
    told = [v for v in story.violations() if v.invariant == "I7"]
    assert told == []


# --- I8: steps -----------------------------------------------------------------------------------------------------------


@breaks("I8", "again after it was kept")
def a_step_that_was_kept_was_taken_again(story: Story) -> None:
    story.retell(story.record("effect", step="step-1"), step="step-0")


@breaks("I8", "was used, and it was taken again")
def a_step_was_taken_again_whose_result_had_been_used(story: Story) -> None:
    kept = [step for step in story.steps if step.name == "step-0"]
    story.drop(kept[0])
    story.now = 1.5
    story.effect("steps", "step-1", 1)
    story.now = 9.1
    story.effect("steps", "step-0", 2)


@breaks("I8", "taken and not kept")
def a_step_was_never_kept(story: Story) -> None:
    story.drop(story.steps[1])


@breaks("I8", "acted twice")
def an_agent_that_must_not_act_twice_did(story: Story) -> None:
    story.send("k5", "careful", "careful")
    for attempt in (1, 2):
        story.effect("careful", "act", attempt)


def test_a_step_that_was_not_kept_may_be_taken_again(well: Story) -> None:
    story = well.copy()
    story.now = 1.9
    story.effect("steps", "step-1", 1)
    assert story.violations() == []


def test_the_same_step_may_be_taken_in_another_turn(well: Story) -> None:
    story = well.copy()
    ask = story.task("ask")
    for run, now in zip([r for r in story.runs if r.task == ask.task], (10.0, 11.0), strict=True):
        story.now = now
        story.effect("ask", "pay", 1, seconds=0.0)
        story.steps.append(
            StepRow(
                task=ask.task,
                input_number=run.input_number,
                name="pay",
                result="1",
                run=run.run,
                created_at=run.created_at,
            )
        )
        story.change(run, ended_at=run.created_at + 0.5)
    assert story.violations() == []


# --- I9: recovery ------------------------------------------------------------------------------------------------------------


@breaks("I9", "never taken up again")
def a_task_was_lost_with_its_worker(story: Story) -> None:
    story.untell(story.record("began", attempt=2))
    for event in story.log("steps")[2:]:
        story.drop(event)


@breaks("I9", "taken up only after 17.0 s")
def a_task_waited_too_long_for_another_worker(story: Story) -> None:
    for record in list(story.ledger):
        if record["task"] == "steps" and record["attempt"] == 2:
            story.retell(record, later=10)
    for event in story.log("steps")[2:]:
        story.change(event, created_at=event.created_at + 10)


@pytest.mark.parametrize(("later", "found"), [(4.5, 0), (5.5, 1)])
def test_a_rescuer_that_freezes_in_its_transaction_delays_by_a_third_of_a_lease(
    well: Story, later: float, found: int
) -> None:
    story = well.copy()
    story.now = 7
    story.client("fault", name="rescue.fenced", process="worker3", pid=99, action="stop")
    for record in list(story.ledger):
        if record["task"] == "steps" and record["attempt"] == 2:
            story.retell(record, later=later)
    for event in story.log("steps")[2:]:
        story.change(event, created_at=event.created_at + later)
    late = [v for v in story.violations() if v.invariant == "I9" and "only after" in v.text]
    assert len(late) == found


@breaks("I9", "never taken up again")
def attempts_that_died_are_not_counted(story: Story) -> None:
    story.retell(story.record("began", attempt=2), attempt=1)
    for event in story.log("steps")[2:]:
        story.drop(event)


@pytest.mark.parametrize(("server", "excused"), [("postgres", True), ("redis", False)])
def test_the_database_is_an_excuse_and_redis_is_none(
    well: Story, server: str, excused: bool
) -> None:
    story = well.copy()
    a_wait = next(m for m in SPOILT if "17.0" in m.words)
    a_wait.happens(story)
    story.now = 3
    story.client("fault", name="outage", process=server, pid=None, action="begun")
    story.now = 12
    story.client("mended", name="outage")
    assert [v.invariant for v in story.violations()] == ([] if excused else ["I9"])


def test_a_frozen_process_that_began_late_what_others_had_done_had_nothing_to_lose(
    well: Story,
) -> None:
    """Its run was somebody else's since long when it woke; then it is killed."""
    story = well.copy()
    story.now = 12
    story.agent("began", "steps", 1, run=None, pid=15, agent="lab-steps")
    story.now = 13
    story.client("fault", name="worker3", process="worker3", pid=15, action="kill")
    assert story.violations() == []


def test_what_had_ended_before_its_worker_died_is_not_taken_up(well: Story) -> None:
    story = well.copy()
    story.now = 25
    story.client("fault", name="worker2", process="worker2", pid=12, action="kill")
    assert story.violations() == []


def test_a_process_frozen_for_long_is_as_good_as_dead(well: Story) -> None:
    story = well.copy()
    story.retell(story.record("fault"), action="stop")
    a_loss = next(m for m in SPOILT if m.happens.__name__ == "a_task_was_lost_with_its_worker")
    a_loss.happens(story)
    assert "I9" in {v.invariant for v in story.violations()}
    story.now = 5
    story.client("fault", name="x", process="worker1", pid=11, action="cont")
    assert "I9" not in {v.invariant for v in story.violations()}


def test_recoveries_are_the_seconds_to_the_next_attempt(well: Story) -> None:
    assert recoveries(well.history, well.ledger) == [pytest.approx(7.0)]


def test_who_had_stopped_before_the_fault_recovers_from_nothing(well: Story) -> None:
    story = well.copy()
    story.now = 1.9
    story.agent("stopped", "steps", 1, why="end", pid=11)
    assert recoveries(story.history, story.ledger) == []


# --- I15: cancelling -----------------------------------------------------------------------------------------------------------------


@breaks("I15", "was cancelled and is TASK_STATE_COMPLETED")
def a_cancelled_task_completed(story: Story) -> None:
    story.change(story.task("forever"), state="TASK_STATE_COMPLETED")


@breaks("I15", "does not exist")
def a_cancelled_task_is_gone(story: Story) -> None:
    story.drop(story.task("forever"))


@breaks("I15", "at work 3.3 s after the cancel")
def a_cancelled_agent_worked_on(story: Story) -> None:
    story.untell(story.record("fault"))
    story.retell(story.record("tick"), later=3)


def test_after_a_fault_an_agent_may_take_longer_to_stop(well: Story) -> None:
    story = well.copy()
    story.retell(story.record("tick"), later=3)
    assert story.violations() == []


# --- I16: one key, one task ------------------------------------------------------------------------------------------------------------------


@breaks("I16", "accepted as two tasks")
def a_send_that_came_again_made_another_task(story: Story) -> None:
    story.client("accepted", key="k1", task="ask")


@breaks("I16", "has 0 rows")
def a_key_was_not_kept(story: Story) -> None:
    story.drop(story.keys[0])


@breaks("I16", "with another task")
def a_key_was_kept_with_another_task(story: Story) -> None:
    story.change(story.keys[0], task=2)


@breaks("I16", "belongs to no key")
def a_message_was_accepted_twice_and_nobody_knows_of_the_other(story: Story) -> None:
    story.runs.append(msgspec.structs.replace(story.run("forever"), run=99))


# --- I17: errors ---------------------------------------------------------------------------------------------------------------------------------


@breaks("I17", "was told 500")
def a_client_was_told_an_internal_error(story: Story) -> None:
    story.client("refused", key="k9", status=500, code={"code": 500}, retry_after=None)


@breaks("I17", "was told 503")
def a_client_was_turned_away_and_not_told_when_to_come_again(story: Story) -> None:
    story.client("refused", key="k9", status=503, code=-32000, retry_after=None)


@breaks("I17", "was told 200 -32603")
def a_client_was_told_an_internal_error_over_json_rpc(story: Story) -> None:
    story.client("failed-request", operation="GetTask", status=200, code=-32603, retry_after=None)


@breaks("I17", "was told 418")
def a_client_was_told_something_the_protocol_does_not_know(story: Story) -> None:
    told = {"error": {"code": 418}}
    story.client("failed-request", operation="get", status=418, code=told, retry_after=None)


def test_errors_that_the_protocol_names_are_clean(well: Story) -> None:
    story = well.copy()
    story.client("not-cancelled", task="steps", code={"error": {"code": 400}})
    story.client("failed-request", operation="get", status=404, code=-32001, retry_after=None)
    assert story.violations() == []


# --- processes, and what is left ------------------------------------------------------------------------------------------------------------------


@breaks("alive", "worker1 ended with code -11")
def a_process_crashed(story: Story) -> None:
    story.client("process", name="worker1", pid=11, event="died", code=-11)


@breaks("I19", "was left running")
def a_run_is_left(story: Story) -> None:
    story.change(story.run("steps"), status="running")


@breaks("I19", "was left ended")
def a_run_keeps_its_token(story: Story) -> None:
    story.change(story.run("steps"), token="t")


@breaks("I19", "with a token")
def a_task_is_still_held(story: Story) -> None:
    story.change(story.task("steps"), run_token="t")


# --- trees of tasks ---------------------------------------------------------------------------------------------------------------------------------


@breaks("tree", "was neither sent nor called")
def a_call_has_two_tasks(story: Story) -> None:
    story.call("tree", "double", "leaf")
    story.status("double", "COMPLETED")
    story.drop(story.calls[-1])


@breaks("tree", "does not name leaf")
def the_step_of_a_call_names_another_task(story: Story) -> None:
    (step,) = [step for step in story.steps if "leaf" in step.name]
    story.change(step, result='{"task": "other"}')


@breaks("tree", "and leaf was left TASK_STATE_WORKING")
def a_called_task_goes_on_after_the_end(story: Story) -> None:
    story.change(story.task("leaf"), state="TASK_STATE_WORKING")


@breaks("tree", "was left open")
def a_call_is_open_after_the_end(story: Story) -> None:
    story.change(story.calls[0], open=True)


@breaks("tree", "asked 2 times for 1 questions")
def a_question_is_asked_again(story: Story) -> None:
    story.change(story.log("tree")[-1], body=story.log("tree")[2].body)


@breaks("tree", "2 of 1 answers went down")
def an_answer_goes_down_twice(story: Story) -> None:
    story.pass_down("leaf", "answer 7")


@breaks("tree", "without its answer")
def an_answer_has_no_effect(story: Story) -> None:
    story.change(story.task("tree"), status_message="{}")


def test_called_tasks_may_be_cancelled_with_the_one_that_has_called(well: Story) -> None:
    story = well.copy()
    story.now = 40
    story.send("k5", "tree2", "tree")
    story.call("tree2", "leaf2", "leaf")
    story.client("cancelling", task="tree2")
    for task in ("tree2", "leaf2"):
        story.status(task, "CANCELED", by_run=False)
    assert not story.violations()


def test_a_question_stands_again_once_the_words_of_another_attempt_have_hidden_it(
    well: Story,
) -> None:
    story = well.copy()
    story.now = 40
    story.send("k5", "tree2", "tree", "question")
    story.call("tree2", "leaf2", "leaf", "question")
    story.status("leaf2", "INPUT_REQUIRED", "what?")
    story.status("tree2", "INPUT_REQUIRED", "what?")
    story.status("tree2", "WORKING", "a2:calling")
    story.status("tree2", "INPUT_REQUIRED", "what else?")
    assert any("asked 2 times" in violation.text for violation in story.violations())
    story.change(story.log("tree2")[-1], body=story.log("tree2")[-3].body)
    assert not any("times for" in violation.text for violation in story.violations())


# --- the fold ------------------------------------------------------------------------------------------------------------------------------------------------


@breaks("fold", "the status of steps")
def the_status_of_a_row_is_not_the_last_one(story: Story) -> None:
    story.change(story.task("steps"), status_message="")


@breaks("fold", "artifact page of steps")
def an_artifact_lacks_a_piece(story: Story) -> None:
    row = next(a for a in story.artifacts if a.task == 1)
    short = {**json.loads(row.body), "parts": [{"text": "a2:0;"}]}
    story.change(row, body=json.dumps(short))


@breaks("fold", "artifact page of steps")
def an_artifact_lacks_its_pieces(story: Story) -> None:
    story.change(story.artifacts[0], body='{"artifactId":"page","parts":[]}')


def test_an_artifact_may_be_in_the_log_alone(well: Story) -> None:
    story = well.copy()
    story.change(story.artifacts[0], body="")
    assert not story.violations()


@breaks("fold", "artifact page of steps")
def an_artifact_is_gone(story: Story) -> None:
    story.drop(story.artifacts[0])


@breaks("fold", "logged messages")
def a_message_is_gone(story: Story) -> None:
    story.drop(story.messages[0])


@breaks("fold", "as it never was")
def a_client_got_a_task_that_never_was(story: Story) -> None:
    got = story.record("got")
    story.retell(got, view={**got["view"], "artifacts": []})


@breaks("fold", "which does not exist")
def a_client_got_a_task_that_is_not_there(story: Story) -> None:
    story.retell(story.record("got"), task="nobody")


def test_a_client_may_get_the_task_as_it_was_on_its_way(well: Story) -> None:
    story = well.copy()
    status = json.loads(story.log("steps")[2].body)["status"]
    view = {"id": "steps", "status": status, "artifacts": []}
    story.client("got", task="steps", view=view)
    assert story.violations() == []


# --- texts -------------------------------------------------------------------------------------------------------------------------------------------------


def _say_twice(story: Story, piece: int) -> None:
    """A piece of the told text begins with what was said before it."""
    event = [event for event in story.log("tell") if event.kind == ARTIFACT][piece]
    story.change(event, body=event.body.replace("a1:0", "a1:0;a1:0"))


@breaks(
    "text",
    "tell says ['0;0;0 kept;slept;done;', '0;0 rested;', '0;0 rested;'], and one attempt says",
)
def a_word_is_said_twice(story: Story) -> None:
    _say_twice(story, 6)


@breaks("text", "tell says ['0;slept;done;', '0;0 rested;', '0;0 rested;']")
def a_word_is_missing(story: Story) -> None:
    event = [event for event in story.log("tell") if event.kind == ARTIFACT][6]
    story.change(event, body=event.body.replace("a1:0 kept;", ""))


@breaks("text", "tell says ['0;0 kept;slept;done;', '0;0;0 rested;', '0;0 rested;']")
def what_a_dead_attempt_said_stays(story: Story) -> None:
    event = [event for event in story.log("tell") if event.kind == ARTIFACT][4]
    story.change(event, body=event.body.replace('"append": false', '"append": true'))


@breaks("text", "was read in 0.3 as ['0;0;")
def a_word_is_said_twice_in_an_older_dialect(story: Story) -> None:
    read = story.record("read")
    told = json.loads(json.dumps(read["view"]).replace("a1:0;", "a1:0;a1:0;"))
    story.retell(read, view=told)


@breaks("text", "was read in 1.0 as ['1;")
def another_word_was_shown_on_the_way(story: Story) -> None:
    got = story.record("got", task="tell")
    told = json.loads(json.dumps(got["view"]).replace("a1:0;", "a1:1;"))
    story.retell(got, view=told)


@breaks("text", "adds up to ['0;0 kept;0 kept;slept;done;', '0;0 rested;', '0;0 rested;']")
def a_resumed_stream_shows_a_piece_again(story: Story) -> None:
    opened = story.record("opened", stream="tt")
    story.retell(opened, after=9)


def test_a_text_is_known_without_the_numbers_of_its_attempts(well: Story) -> None:
    story = well.copy()
    for record in [*story.history]:
        if record.get("task") == "tell":
            told = json.loads(json.dumps(dict(record.said)).replace("a1:0 kept;", "a2:0 kept;"))
            story.retell(record, **told)
    for event in story.log("tell"):
        story.change(event, body=event.body.replace("a1:0 kept;", "a2:0 kept;"))
    assert "text" not in {violation.invariant for violation in story.violations()}


def test_a_violation_can_be_read() -> None:
    (violation,) = [v for v in check([], [], Dump()) if "history" in v.text]
    assert str(violation) == "checkable: there is no history"
