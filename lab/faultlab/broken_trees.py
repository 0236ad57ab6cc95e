"""Mistakes about trees of tasks: calls, what goes up and down in them, and their ends."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_TREES"]

DELEGATIONS = "a2a_tasks/store/delegations.py"
BEGINS = "tests/integration/store/test_delegations.py"
CALLS = "tests/integration/execution/test_calls.py"
TREES = "tests/integration/execution/test_call_trees.py"
#: Any sequence of all that can happen in a tree, against its laws.

BROKEN_TREES: tuple[Broken, ...] = (
    Broken(
        "call-of-a-run-that-has-lost-its-task",
        DELEGATIONS,
        "tokens.get(run.task) != run.token:\n            raise LeaseLost",
        "tokens.get(run.task) != run.token:\n            pass",
        (),
        f"{BEGINS}::test_a_run_that_has_lost_its_task_calls_nobody",
    ),
    Broken(
        "call-whose-step-is-left-to-another-transaction",
        DELEGATIONS,
        "        Step.objects.create(**turn, name=wanted.name, result=self.result, run=run.key)",
        "        Step(**turn, name=wanted.name, result=self.result, run=run.key)",
        (),
        f"{BEGINS}::test_both_are_there_before_the_task_is_accepted",
    ),
    Broken(
        "call-that-begins-again",
        DELEGATIONS,
        "            raise CallBegun(result)",
        "            pass",
        (),
        f"{BEGINS}::test_a_call_that_has_begun_begins_no_other_task",
    ),
    Broken(
        "circle-of-calls-that-is-not-looked-for",
        "a2a_tasks/operations/agent_calls.py",
        "    if agent.slug in tree.path and not agent.recursive:",
        "    if False:",
        (),
        f"{CALLS}::TestARefusal::test_of_a_circle_names_the_path",
    ),
    Broken(
        "caller-that-is-woken-by-a-question-of-which-its-client-hears",
        DELEGATIONS,
        "    questions=AskPolicy.RETURN, child__state__in=INTERRUPTED\n",
        "    child__state__in=INTERRUPTED\n",
        (),
        f"{BEGINS}::test_a_caller_waits_on_while_its_client_is_asked",
    ),
    Broken(
        "question-that-is-forgotten-once-it-stands",
        DELEGATIONS,
        "        call.relayed = question\n",
        "        pass\n",
        (),
        f"{TREES}::TestAQuestion::"
        "test_goes_up_to_the_client_and_the_answer_down_and_no_agent_between_runs",
    ),
    Broken(
        "cancel-that-marks-no-calls",
        "a2a_tasks/store/cancel.py",
        ".update(open=False, cancel=True)",
        ".update(open=False)",
        (),
        f"{TREES}::TestACancel::test_of_the_root_ends_the_tree",
    ),
    Broken(
        "look-that-leaves-the-calls-of-the-dead",
        "a2a_tasks/store/call_trees.py",
        "        delegations.close(*turn)\n",
        "        pass\n",
        (),
        f"{TREES}::TestTheEndOfACaller::test_by_a_death_for_good_cancels_them_at_the_next_look",
    ),
    Broken(
        "end-that-cancels-what-may-be-left",
        DELEGATIONS,
        "        left = calls.filter(at_end=EndPolicy.CANCEL).exclude(",
        "        left = calls.exclude(",
        (),
        f"{TREES}::TestTheEndOfACaller",
    ),
    Broken(
        "answer-that-leaves-the-question-above",
        "a2a_tasks/store/replies.py",
        "    Delegation.objects.filter(pk=asked.call.pk).update(relayed=None)\n",
        "",
        (),
        "tests/integration/store/test_delegations.py::"
        "test_a_question_stands_at_the_caller_until_the_answer_is_written",
    ),
)
