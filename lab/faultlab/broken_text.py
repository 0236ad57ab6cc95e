"""Broken builds: the words of a stranger meet work that is more than linear, or reach the terminal of an operator."""

from __future__ import annotations

from lab.faultlab.mistake import Broken

__all__ = ["BROKEN_TEXT"]

FORMS = "tests/unit/protocol/test_forms.py"

BROKEN_TEXT: tuple[Broken, ...] = (
    Broken(
        "quadratic-pattern-of-tokens",
        "a2a_tasks/telemetry/redaction.py",
        r'(re.compile(r"\beyJ[\w-]{8,}(?:\.+[\w-]+)*"), REDACTED)',
        r'(re.compile(r"\beyJ[\w-]+\.[\w-]+"), REDACTED)',
        (),
        "tests/unit/test_patterns.py::test_each_pattern_takes_linear_time",
    ),
    Broken(
        "redaction-of-any-length",
        "a2a_tasks/telemetry/redaction.py",
        "    if len(text) <= length:\n",
        "    if length:\n",
        (),
        "tests/integration/telemetry/test_redaction.py::test_a_long_text_is_cut_before_it_is_redacted",
    ),
    Broken(
        "patterns-of-forms-by-python",
        "a2a_tasks/protocol/schemas.py",
        "        return re2.compile(pattern, _options)\n",
        '        return __import__("re").compile(pattern)\n',
        (),
        f"{FORMS}::test_a_pattern_that_is_not_matched_in_linear_time_is_refused_with_its_field",
    ),
    Broken(
        "schema-below-chooses-the-engine",
        "a2a_tasks/protocol/schemas.py",
        "    made.evolve = evolve\n",
        "",
        (),
        f"{FORMS}::test_a_schema_below_cannot_choose_another_engine",
    ),
    Broken(
        "faults-that-cost-no-steps",
        "a2a_tasks/protocol/schemas.py",
        "            _spend(len(fault.message) // 64)\n",
        "",
        (),
        f"{FORMS}::test_an_answer_that_takes_too_long_to_check_is_refused",
    ),
    Broken(
        "another-question-under-the-lock",
        "a2a_tasks/store/replies.py",
        "if FORM in question and question != checked:",
        "if FORM in question and not checked:",
        (),
        "tests/integration/store/test_replies.py::TestForms::"
        "test_another_question_meanwhile_is_the_one_that_the_answer_must_fit",
    ),
    Broken(
        "raw-traces-in-the-log",
        "a2a_project/log_format.py",
        "(line.translate(ESCAPED) for line in lines)",
        "(line for line in lines)",
        (),
        "tests/unit/test_log_line.py::"
        "test_a_trace_stands_below_its_line_and_no_line_of_it_looks_like_one_of_the_log",
    ),
    Broken(
        "cookies-with-backslashes",
        "a2a_project/routing.py",
        'if b"\\\\" not in pair',
        "if pair",
        (),
        "tests/unit/test_routing.py::test_cookies_with_a_backslash_do_not",
    ),
    Broken(
        "lines-of-a-head-as-long-as-it",
        "a2a_project/http_protocol.py",
        "size if line <= LINE_BYTES else size + HEAD_BYTES",
        "size",
        (),
        "lab/server/test_heads.py::test_a_head_that_is_too_large_is_refused",
    ),
)
