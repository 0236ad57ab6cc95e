"""Broken builds at the seams to models and frameworks: each mistake has a story that has to fail."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_SEAMS"]

BROKEN_SEAMS: tuple[Broken, ...] = (
    Broken(
        "pair-of-halves-that-become-two-marks",
        "a2a_tasks/agents/emission.py",
        "        if held and chunk.append:\n",
        "        if False:\n",
        (),
        "tests/integration/execution/test_lax_json.py::TestWhatAnAgentYields::"
        "test_a_pair_in_two_pieces_is_joined",
    ),
    Broken(
        "cancel-of-a-question-that-nobody-hears-of",
        "a2a_tasks/store/cancel_notices.py",
        "    if found is None or (works and not asks) or",
        "    if found is None or works or asks or",
        (),
        "tests/integration/execution/test_cancelled_tasks.py::TestTheLogOfTheRun::"
        "test_it_says_that_the_agent_was_called_and_what_it_logged",
    ),
    Broken(
        "calls-of-one-answer-that-share-an-approval",
        "a2a_frameworks/shared/call_ids.py",
        "        used.add(unique)\n",
        "",
        (),
        "tests/integration/frameworks/test_model_contract.py::TestContract::"
        "test_two_calls_of_one_answer_with_one_id_have_a_field_each",
    ),
    Broken(
        "call-with-a-repeated-id-that-is-in-no-record",
        "a2a_tasks/execution/tool_events.py",
        'return f"{event.id}#{number}" if number > 1 else str(event.id)',
        "return str(event.id)",
        (),
        "tests/integration/frameworks/test_model_contract.py::TestContract::"
        "test_each_call_is_made_and_recorded_once_if_the_model_repeats_ids",
    ),
    Broken(
        "written-tokens-of-a-cache-that-cost-as-others",
        "a2a_tasks/store/prices.py",
        "        cache_write_tokens=written,\n",
        "",
        (),
        "tests/integration/store/test_prices.py::TestCost::"
        "test_of_claude_with_a_cache_is_that_of_the_package",
    ),
)
