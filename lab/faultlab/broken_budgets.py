"""Broken builds of budgets, clocks and deletions: each mistake has a story that has to fail."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_BUDGETS"]

ROOM = "tests/integration/store/test_budget_room.py::"
RUNS = "tests/integration/execution/test_budgets.py::"

BROKEN_BUDGETS: tuple[Broken, ...] = (
    Broken(
        "budget-reservation-outlives-its-lease",
        "a2a_tasks/store/budget_room.py",
        '    held = mine.filter(status=RunStatus.RUNNING, token=OuterRef("token"))\n',
        "    held = mine\n",
        (),
        ROOM + "TestNearTheLimit::test_a_run_that_has_lost_its_lease_holds_nothing",
    ),
    Broken(
        "budget-admits-without-reserving",
        "a2a_tasks/store/budget_room.py",
        "        if left <= others:\n",
        "        if left <= 0:\n",
        (),
        ROOM + "TestNearTheLimit::test_as_many_runs_are_admitted_as_the_room_suffices_for",
    ),
    Broken(
        "budget-wakes-all-that-wait",
        "a2a_tasks/store/budget_room.py",
        "    return max(0, math.ceil((left - reserved) / mean)) if mean else None\n",
        "    return None\n",
        (),
        ROOM + "TestWaking::test_as_many_are_woken_as_an_operator_allows",
    ),
    Broken(
        "budget-asks-only-once",
        "a2a_tasks/store/budget_room.py",
        "    if left <= 0:\n        ask(use, budget, task)\n        return 0\n",
        "    if left <= 0:\n        return 0\n",
        (),
        ROOM + "TestWaking::test_operators_are_asked_again_once_that_is_used_up",
    ),
    Broken(
        "budget-forgets-those-that-wait-for-reports",
        "a2a_tasks/store/budget_room.py",
        "    rows = BudgetUse.objects.filter(changed | roomy | unasked | refusing, waited=True)\n",
        "    rows = BudgetUse.objects.filter(changed | roomy | unasked, waited=True)\n",
        (),
        ROOM + "TestWaking::test_who_waited_for_reports_of_others_is_refused_if_these_used_up_all",
    ),
    Broken(
        "budget-exact-limit-fails",
        "a2a_tasks/execution/meter.py",
        "        if refusals and any(one.refuses for one in before):\n",
        "        if refusals:\n",
        (),
        RUNS + "TestTheExactLimit::test_suffices",
    ),
    Broken(
        "usage-is-charged-although-it-was-stored",
        "a2a_tasks/store/usage.py",
        "            new = {key: entry for key, entry in new.items() if key not in stored}\n",
        "            Usage.objects.filter(report__in=stored).delete()\n",
        (),
        ROOM + "TestReports::test_are_charged_once_although_one_of_them_comes_again",
    ),
    Broken(
        "sleep-follows-a-clock-that-is-set-back",
        "a2a_tasks/execution/runner.py",
        "            await run_in_thread(parking.shift_waits, jump)\n",
        "            pass\n",
        (),
        "tests/integration/execution/test_parking.py::"
        "test_a_clock_that_is_set_back_makes_no_sleep_longer",
    ),
    Broken(
        "webhook-tries-by-the-pushers-clock",
        "a2a_push/delivery.py",
        "    scale, now = float(conf.WEBHOOK_TIME_SCALE), clock.estimate()\n",
        '    scale, now = float(conf.WEBHOOK_TIME_SCALE), __import__("time").time()\n',
        (),
        "tests/integration/push/test_clocks.py::"
        "test_the_next_try_and_the_signature_are_of_the_databases_time",
    ),
    Broken(
        "deletion-names-every-row",
        "a2a_console/admin/widgets/staff.py",
        "class HostWideAdmin(CountedDeletion, _WithViews[_M]):\n",
        "class HostWideAdmin(_WithViews[_M]):\n",
        (),
        "tests/integration/console/admin/test_deletion.py::"
        "test_a_budget_counts_its_sums_and_names_none",
    ),
    Broken(
        "batch-fails-together",
        "a2a_tasks/store/batched_call.py",
        "        if not isinstance(fault, Overloaded):\n            return True\n",
        "        if not isinstance(fault, Overloaded):\n            return False\n",
        (),
        "tests/integration/store/test_batched_call.py::TestGroup::"
        "test_an_item_that_cannot_be_written_fails_alone_and_the_others_are_written",
    ),
)
