"""Keys as they are written, and which requests are the same."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.idempotency import fingerprint, name_of_key, name_of_message
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, PushConfig, Role


def request(text: str = "hello", message: dict[str, Any] | None = None, **members: Any) -> Any:
    """A request to send."""
    said = {"message_id": "m1", "role": Role.USER, "parts": (Part(text=text),), **(message or {})}
    return SendMessageRequest(message=Message(**said), **members)


class TestAKey:
    @pytest.mark.parametrize(
        ("header", "key"),
        [
            ("a1", "a1"),
            ('"a1"', "a1"),
            (' "a1" ', "a1"),
            (r'"a\"b\\c"', r'a"b\c'),
            ('"half', '"half'),
            ("a, b;c", "a, b;c"),
            ("k" * 255, "k" * 255),
        ],
    )
    def test_is_the_text_quoted_or_not(self, header: str, key: str) -> None:
        assert name_of_key(header) == f"key/{key}"

    @pytest.mark.parametrize("header", ["", " ", '""', "k" * 256, "a\tb", "a\x00b", "\xe9"])
    def test_of_another_form_is_refused(self, header: str) -> None:
        with pytest.raises(InvalidParams) as caught:
            name_of_key(header)
        assert caught.value.violations[0][0] == "Idempotency-Key"

    def test_of_a_message_is_its_id_in_its_place(self) -> None:
        places: list[dict[str, Any]] = [
            {},
            {"message_id": "m2"},
            {"context_id": "m1"},
            {"task_id": "m1"},
            {"task_id": "m2"},
        ]
        names = [name_of_message(request(message=place)) for place in places]
        assert len(set(names)) == len(places)
        moved = request(message={"task_id": "m1", "context_id": "its own"})
        assert name_of_message(moved) == names[3]
        assert all(len(name) < 100 for name in names)


class TestTheFingerprint:
    @pytest.mark.parametrize(
        "other",
        [
            request("Hello"),
            request(message={"parts": (Part(text="hello"), Part(text=""))}),
            request(message={"parts": (Part(text="hello", media_type="text/plain"),)}),
            request(message={"metadata": {"a": 1}}),
            request(message={"task_id": "t"}),
            request(message={"context_id": "c"}),
            request(message={"reference_task_ids": ("t",)}),
            request(metadata={"a": 1}),
            request(accepted_output_modes=("text/plain",)),
            request(named="t"),
            request(push_config=PushConfig(url="https://example.com")),
        ],
    )
    def test_tells_requests_for_other_work_apart(self, other: SendMessageRequest) -> None:
        assert fingerprint(other, ()) != fingerprint(request(), ())

    def test_has_the_extensions_in_any_order(self) -> None:
        assert fingerprint(request(), ("a", "b")) == fingerprint(request(), ("b", "a"))
        assert fingerprint(request(), ("a",)) != fingerprint(request(), ())

    @pytest.mark.parametrize(
        "same",
        [
            request(message={"message_id": "made anew"}),
            request(history_length=3),
            request(return_immediately=True),
            request(metadata={}),
        ],
    )
    def test_is_the_same_however_the_answer_is_wanted(self, same: SendMessageRequest) -> None:
        assert fingerprint(same, ()) == fingerprint(request(), ())

    def test_does_not_depend_on_the_order_of_members(self) -> None:
        one = request(metadata={"a": 1, "b": {"c": 2, "d": 3}})
        two = request(metadata={"b": {"d": 3, "c": 2}, "a": 1})
        assert fingerprint(one, ()) == fingerprint(two, ())

    def test_keeps_no_secret(self) -> None:
        push: dict[str, Any] = {"url": "https://example.com", "id": "1"}
        secret = request(push_config=PushConfig(**push, token="secret", credentials="secret"))
        assert fingerprint(secret, ()) == fingerprint(request(push_config=PushConfig(**push)), ())

    def test_knows_a_request_of_a_dialect_without_message_ids_again(self) -> None:
        params = {
            "id": "mine",
            "message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]},
        }
        once, again = (DIALECTS["v00"].decode("SendMessage", params) for _ in range(2))
        assert isinstance(once, SendMessageRequest)
        assert isinstance(again, SendMessageRequest)
        assert once.message.message_id != again.message.message_id
        assert fingerprint(once, ()) == fingerprint(again, ())
