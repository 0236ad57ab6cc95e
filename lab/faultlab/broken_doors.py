"""Mistakes about limits that begin too late, or end too early: at the doors, and between a runner and its processes."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_DOORS"]

GRPC = "a2a_grpc/server"
TESTS = "tests/unit/grpc_server"
PROCESSES = "tests/integration/execution/test_processes.py::TestWhatIsTooLarge"

BROKEN_DOORS: tuple[Broken, ...] = (
    # --- gRPC
    Broken(
        "handshake-without-an-end",
        f"{GRPC}/door.py",
        '"ssl_handshake_timeout": HANDSHAKE_SECONDS',
        '"ssl_handshake_timeout": 3600.0',
        (),
        f"{TESTS}/test_door.py::test_a_handshake_that_does_not_come_gives_its_place_back",
    ),
    Broken(
        "place-that-a-failed-handshake-keeps",
        f"{GRPC}/door.py",
        'logger.debug("a gRPC connection did not begin: %r", fault)\n            place.give_back()',
        'logger.debug("a gRPC connection did not begin: %r", fault)',
        (),
        f"{TESTS}/test_door.py::test_what_is_no_tls_gives_its_place_back",
    ),
    Broken(
        "turn-of-a-connection-without-an-end",
        f"{GRPC}/connection.py",
        "FRAMES_OF_TURN, SECONDS_OF_TURN = 50, 0.002",
        "FRAMES_OF_TURN, SECONDS_OF_TURN = 1_000_000, 60.0",
        (),
        f"{TESTS}/test_connection.py::test_a_flood_leaves_turns_of_the_loop_to_others",
    ),
    Broken(
        "frames-without-content-that-cost-nothing",
        f"{GRPC}/connection.py",
        "if is_void(frame):",
        "if False:",
        (),
        f"{TESTS}/test_connection.py::test_empty_continuations_of_heads_end_their_connection",
    ),
    Broken(
        "ping-after-data-that-counts",
        f"{GRPC}/connection.py",
        "if sent == self._sent_before:",
        "if sent is not None:",
        (),
        f"{TESTS}/test_connection.py::test_pings_after_data_do_not_count",
    ),
    Broken(
        "unread-answer-that-is-not-counted",
        f"{GRPC}/call.py",
        "if not quota.take(size, 0):",
        "if quota.take(size, 0) is None:",
        (),
        f"{TESTS}/test_unread_answers.py::"
        "test_many_answers_that_nobody_reads_are_refused_and_small_ones_are_not",
    ),
    Broken(
        "call-of-a-client-that-reads-nothing-without-an-end",
        f"{GRPC}/call.py",
        "end.reschedule(loop.time())",
        "plan()",
        (),
        f"{TESTS}/test_unread_answers.py::"
        "test_a_call_whose_client_reads_nothing_is_reset_and_others_are_answered",
    ),
    Broken(
        "last-word-of-a-call-that-is-an-error",
        f"{GRPC}/connection.py",
        "raise asyncio.CancelledError from None",
        "raise",
        (),
        f"{TESTS}/test_unread_answers.py::"
        "test_a_connection_that_ends_before_the_last_word_of_a_call_is_no_error",
    ),
    # --- HTTP
    Broken(
        "next-request-before-the-answer-is-read",
        "a2a_project/http_protocol.py",
        "if self.flow.write_paused:\n            self._next",
        "if False:\n            self._next",
        (),
        "tests/unit/test_http_protocol.py::"
        "TestAnswersThatNobodyReads::test_keep_the_next_request_from_its_begin",
    ),
    Broken(
        "reader-that-seems-to-stand-still-while-the-kernel-is-full",
        "a2a_tasks/bindings/unread.py",
        "return here + int(there)",
        "return here",
        (),
        "tests/unit/test_unread.py::"
        "test_a_client_that_reads_a_little_is_seen_to_read_before_the_kernel_takes_more",
    ),
    Broken(
        "slow-reader-that-is-never-cut",
        "a2a_tasks/bindings/unread.py",
        "if left and is_too_slow(before - count_unread(self._transport)):",
        "if False:",
        (),
        "tests/unit/test_http_protocol.py::TestAnswersThatNobodyReads::test_end_with_their_connection",
    ),
    # --- processes of agents
    Broken(
        "message-of-any-length-from-a-process",
        "a2a_tasks/execution/pipe.py",
        "if most and length > most:",
        "if length < 0:",
        (),
        f"{PROCESSES}::test_a_process_that_sends_more_is_killed_before_it_is_read",
    ),
    Broken(
        "messages-of-a-process-that-wait-without-a-bound",
        "a2a_tasks/execution/processes.py",
        "await self.process_run.wait_room()",
        "pass",
        (),
        f"{PROCESSES}::test_what_waits_in_the_runner_is_bounded_and_the_rest_waits_in_the_pipe",
    ),
    Broken(
        "shared-object-that-is-measured-once",
        "a2a_tasks/execution/child.py",
        "_check_size(mend_emission(emission(value, begun=False)))",
        "mend_emission(emission(value, begun=False))",
        (),
        f"{PROCESSES}::test_it_fails_its_task_and_never_comes_to_the_runner",
    ),
)
