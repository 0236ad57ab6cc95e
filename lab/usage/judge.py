"""The judge: the answers of the model server, the reports that were begun, and the rows of the ledger. Pure."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["Answer", "Counts", "Judgement", "judge"]

#: Input and output tokens: each request of a task has other ones, because its history grows.
Tokens = tuple[int, int]
#: Seconds for which a killed process may seem to go on: what it sent is still on its way.
DYING = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A request to the model server: when it came, and when its whole answer was sent; 0 = it was cut off."""

    task: int
    tokens: Tokens
    begun: float
    ended: float = 0.0


@dataclass(slots=True)
class Counts:
    """A number of calls and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, tokens: Tokens, times: int = 1) -> None:
        """Add calls."""
        self.calls += times
        self.input_tokens += times * tokens[0]
        self.output_tokens += times * tokens[1]


@dataclass(slots=True)
class Judgement:
    """The sums, and what is wrong."""

    answered: Counts = field(default_factory=Counts)
    cut_off: Counts = field(default_factory=Counts)
    ledger: Counts = field(default_factory=Counts)
    #: Answers that were sent, and whose process died before the agent began its report.
    unread: Counts = field(default_factory=Counts)
    #: Reports that were begun, and whose process died before they were stored.
    unstored: Counts = field(default_factory=Counts)
    faults: list[str] = field(default_factory=list)


def judge(
    answers: Sequence[Answer],
    begun: Iterable[tuple[int, Tokens]],
    rows: Iterable[tuple[int, Tokens]],
    kills: Sequence[float],
) -> Judgement:
    """Compare them task by task. A row without an answer is a fault, and so is a loss that no kill explains."""
    found = Judgement()
    told, kept = _group(begun), _group(rows)
    given: defaultdict[int, Counter[Tokens]] = defaultdict(Counter)
    for answer in answers:
        (found.answered if answer.ended else found.cut_off).add(answer.tokens)
        if answer.ended:
            given[answer.task][answer.tokens] += 1
    for task in sorted({*given, *told, *kept}):
        for tokens, times in kept[task].items():
            found.ledger.add(tokens, times)
        found.faults += _find_inventions(task, given[task], told[task], kept[task])
        unread, unstored = given[task] - told[task], told[task] - kept[task]
        for lost, counts in ((unread, found.unread), (unstored, found.unstored)):
            for tokens, times in lost.items():
                counts.add(tokens, times)
        requests = [answer for answer in answers if answer.task == task]
        for tokens, times in (unread + unstored).items():
            if _count_lost(requests, tokens[0], kills) < times:
                found.faults.append(f"task {task} lost {times} answers of {tokens} without a kill")
    return found


def _find_inventions(
    task: int, given: Counter[Tokens], told: Counter[Tokens], kept: Counter[Tokens]
) -> Iterable[str]:
    """Rows without a report, and reports without an answer."""
    for tokens, times in (kept - told).items():
        yield f"task {task} has {times} rows of {tokens} that nobody reported"
    for tokens, times in (told - given).items():
        yield f"task {task} reported {times} answers of {tokens} too many"


def _group(pairs: Iterable[tuple[int, Tokens]]) -> defaultdict[int, Counter[Tokens]]:
    grouped: defaultdict[int, Counter[Tokens]] = defaultdict(Counter)
    for task, tokens in pairs:
        grouped[task][tokens] += 1
    return grouped


def _count_lost(requests: Sequence[Answer], input_tokens: int, kills: Sequence[float]) -> int:
    """Count the answers that a kill may have lost: after it, the same request came again."""
    same = [one for one in requests if one.tokens[0] == input_tokens]
    return sum(
        bool(one.ended) and any(one.ended - DYING <= at <= again.begun for at in kills)
        for one, again in itertools.pairwise(same)
    )
