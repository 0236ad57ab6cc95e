"""Mistakes that only other people's clients and receivers notice: silence, lines, verbs, secrets, beginnings."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_WIRE"]

DELIVERY = "tests/integration/push/test_delivery.py::TestTheBeginning"
LONG = "tests/integration/bindings/test_long_answer.py"

BROKEN_WIRE: tuple[Broken, ...] = (
    Broken(
        "frame-with-separators-of-lines",
        "a2a_tasks/protocol/sse.py",
        "    if not data.isascii():\n        data = on_one_line(data)\n",
        "",
        (),
        "tests/unit/protocol/test_sse.py::TestAFrame::test_has_no_character_at_which_a_reader_of_lines_splits",
    ),
    Broken(
        "comments-that-unseen-events-put-off",
        "a2a_tasks/streaming/stream.py",
        "self.follower.next(due and max(0.0, due - loop.time()))",
        "self.follower.next(idle_seconds)",
        (),
        "tests/integration/bindings/test_streams.py::TestAQuietStream"
        "::test_is_kept_alive_while_its_client_does_not_see_what_happens",
    ),
    Broken(
        "white-space-that-never-comes",
        "a2a_tasks/bindings/jsonrpc_endpoint.py",
        "call_later(seconds, begin)",
        "call_later(3600.0, begin)",
        (),
        f"{LONG}::TestASendThatWaits::test_gives_white_space_until_there_is_an_answer",
    ),
    Broken(
        "second-head-of-an-answer-that-has-begun",
        "a2a_tasks/bindings/jsonrpc_endpoint.py",
        "        if self._begun:\n            await self._send({",
        "        if False:\n            await self._send({",
        (),
        f"{LONG}::test_an_error_that_comes_late_is_the_body_of_what_has_begun",
    ),
    Broken(
        "secret-that-is-sent-in-clear",
        "a2a_push/signing.py",
        "return _MARK.search(token) is not None",
        'return token.startswith("whsec_")',
        (),
        "tests/unit/push/test_webhook.py::test_what_looks_like_a_secret_and_is_none_is_not_sent_as_a_token",
    ),
    Broken(
        "late-webhook-without-a-beginning",
        "a2a_push/store/configs.py",
        "if now.last_event > FIRST_EVENT and begin_late(row):",
        "if False and begin_late(row):",
        (),
        f"{DELIVERY}::test_at_an_ended_task_is_its_end",
    ),
    Broken(
        "beginning-that-is-taken-for-an-event",
        "a2a_push/store/cursor.py",
        "row = _delivery(config, BEGINNING, task.last_event)",
        "row = _delivery(config, task.last_event, task.last_event)",
        (),
        f"{DELIVERY}::test_is_one_body_for_two_that_come_at_once_and_the_event_of_an_earlier_one",
    ),
    Broken(
        "protocol-of-the-last-proxy",
        "a2a_project/trusted_proxies.py",
        'said.split(b",")[0]',
        'said.split(b",")[-1]',
        (),
        "tests/unit/server/test_trusted_proxies.py::test_of_a_list_the_clients_own_counts",
    ),
)
