"""The sizes and repetitions of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """The sizes and repetitions of a full run."""

    rounds: int = 3
    #: Seconds of each `wrk` run.
    seconds: int = 3
    #: S3: tasks in the store. The last two are compared.
    sizes: tuple[int, ...] = (1_000, 1_000_000)
    #: S3: requests a page, of which the median counts.
    list_samples: int = 7
    #: S4: chunks of a stream.
    chunks: tuple[int, ...] = (100, 1_000, 5_000)
    #: S4: a size that took a target longer than this is not repeated.
    repeat_below_seconds: float = 10.0
    #: S5: (connections, streams each).
    first_event: tuple[tuple[int, int], ...] = ((1, 100), (32, 10))
    #: S6: chunks, subscribers, and the seconds the agent waits for them to join.
    fan_out: tuple[int, int, int] = (500, 100, 4)
    #: S7: streams and seconds they sleep.
    idle: tuple[int, int] = (1_000, 30)
    #: W1: agents that wait at once, and how.
    waiting: tuple[tuple[int, str], ...] = (
        (500, "plain"),
        (500, "steps"),
        (2_000, "plain"),
        (2_000, "steps"),
    )
    #: W2: sends at once.
    burst: int = 5_000
    #: A1, A2: tasks there are.
    tasks: int = 1_000_000
    stream_timeout: float = 180.0


QUICK = Plan(
    rounds=1,
    seconds=2,
    sizes=(1_000, 50_000),
    list_samples=3,
    chunks=(100, 1_000),
    first_event=((1, 30), (32, 3)),
    idle=(200, 10),
    waiting=((100, "plain"), (100, "steps")),
    burst=2_000,
    tasks=50_000,
    stream_timeout=60.0,
)
