"""News between tasks and those that they have called: questions, ends and cancels, and the wake of callers."""

from __future__ import annotations

import math
import time

from a2a_tasks.store import delegations, parking
from a2a_tasks.store.cancel import cancel_calls

__all__ = ["end_turn", "look", "look_at_all", "restate", "settle"]

#: Seconds since the last look of a process after which the next one goes further back.
LATELY = 2.0


class _Looks:
    """When this process has looked, by its monotonic clock, and how far through the questions that stand."""

    last = -math.inf
    at = 0


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


def look(*, lately: bool = True) -> None:
    """Do what processes that died have left: for tasks that have ended or asked in the last seconds, or for all.

    It costs one statement where no agent calls another one.
    """
    begun = time.monotonic()
    recent = delegations.RECENT[begun - _Looks.last > LATELY] if lately else None
    if delegations.has_open():
        news = delegations.find_news(recent, after=_Looks.at if lately else 0)
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
    """Wake all runs that wait for tasks which have ended, however long ago. Its cost grows with the runs that wait."""
    while parking.wake(lately=False):
        pass
    look(lately=False)


def _carry_up(parent: int | None) -> None:
    """Let questions stand in a caller, and in turn in its own."""
    while parent is not None:
        parent = delegations.settle_questions(parent)
