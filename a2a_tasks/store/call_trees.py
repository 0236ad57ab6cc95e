"""News between tasks and those that they have called: questions, ends and cancels, and the wake of callers."""

from __future__ import annotations

import math
import time

from a2a_tasks.store import delegations, parking
from a2a_tasks.store.cancel import cancel_calls

__all__ = ["end_turn", "look", "look_at_all", "restate", "settle"]

#: Seconds since the last look of a process after which the next one goes further back.
LATELY = 2.0
#: Most pieces of BATCH runs, and of BATCH calls, in a look at all.
PIECES = 20


class _Looks:
    """When this process has looked, by its monotonic clock, and how far through the questions that stand.

    Its looks at all have come to a run that waits for tasks, and to an open call.
    """

    last = -math.inf
    at = at_run = at_call = 0


def settle(task: int) -> None:
    """Let the caller of a task know that it has ended, asks, or asks no more."""
    parent = delegations.find_parent(task)
    if parent is not None:
        _carry_up(parent)
        parking.wake_callers([parent])


def restate(task: int) -> None:
    """Let a question of a called task stand again, which words of another attempt have hidden."""
    _carry_up(task)


def end_turn(task: int, input_number: int) -> None:
    """Close the calls of a turn that has ended, and cancel the tasks that go on, unless they may be left."""
    delegations.close(task, input_number)
    cancel_calls([task])


def look() -> None:
    """Do what processes that died have left, for tasks that have ended or asked in the last seconds.

    It costs one statement where no agent calls another one.
    """
    begun = time.monotonic()
    recent = delegations.RECENT[begun - _Looks.last > LATELY]
    if delegations.has_open():
        news = delegations.find_news(recent, after=_Looks.at)
        _Looks.at = news.looked_at
        _settle_all(news)
    _Looks.last = begun


def _settle_all(news: delegations.CallNews) -> None:
    for parent in news.asking:
        _carry_up(parent)
    parking.wake_callers(news.callers)
    for turn in news.ended:
        delegations.close(*turn)
    cancel_calls()


def look_at_all() -> None:
    """Wake the runs whose task or calls have ended, however long ago, and do the same for open calls.

    It reads at most PIECES times BATCH runs, and as many calls. If there are more, the next look goes on behind them.
    """
    while parking.wake():
        pass
    for _ in range(PIECES):
        _Looks.at_run = parking.wake_next(_Looks.at_run)
        if not _Looks.at_run:
            break
    for _ in range(PIECES):
        news = delegations.find_next_news(_Looks.at_call)
        _Looks.at_call = news.looked_at
        _settle_all(news)
        if not _Looks.at_call:
            break


def _carry_up(parent: int | None) -> None:
    """Let questions stand in a caller, and in turn in its own."""
    while parent is not None:
        parent = delegations.settle_questions(parent)
