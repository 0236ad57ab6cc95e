"""The judge sees what is wrong, and leaves what is right alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lab.hostile.golden import Request
from lab.hostile.judge import Answer, is_error, leaks, wrong

JSON = ((b"content-type", b"application/json"),)
CALL = Request(b"POST", b"/agents/demo/a2a/1.0", JSON, b'{"jsonrpc":"2.0","id":7,"method":"x"}')
ROUTE = Request(b"GET", b"/agents/demo/a2a/1.0/tasks/x")
TASK = b'{"jsonrpc":"2.0","id":7,"result":{"task":{}}}'
GONE = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Task not found"}}'
MISSING = b'{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found"}}'
PROBLEM = b'{"type":"about:blank","title":"x","status":404,"detail":"x"}'
OLD = b'{"code":-32001,"message":"Task not found"}'


def answer(body: bytes, status: int = 200, kind: bytes = b"application/json") -> Answer:
    """An answer of a kind."""
    return Answer(status, ((b"content-type", kind),), body)


def stream(*blocks: str) -> Answer:
    """A stream."""
    text = "".join(block + "\n\n" for block in blocks).encode()
    return answer(text, kind=b"text/event-stream")


@pytest.mark.parametrize(
    ("request_", "said", "error"),
    [
        (CALL, answer(TASK), False),
        (CALL, answer(GONE), True),
        (CALL, answer(GONE.replace(b"7", b"null", 1)), True),
        (CALL, stream(": keep-alive\nid: 1\ndata: " + TASK.decode(), ": keep-alive"), False),
        (CALL, stream("event: error\ndata: " + GONE.decode()), True),
        (ROUTE, answer(b"{}"), False),
        (ROUTE, answer(MISSING, 404), True),
        (replace(ROUTE, target=b"/agents/demo/a2a/1.0-draft/v1/tasks/x"), answer(PROBLEM, 404, b"application/problem+json"), True),
        (replace(ROUTE, target=b"/agents/demo/a2a/0.3/v1/tasks/x"), answer(OLD, 404), True),
        (replace(ROUTE, verb=b"HEAD"), answer(b"", 405), True),
        (replace(ROUTE, target=b"/nothing"), answer(b"<h1>Not Found</h1>", 404, b"text/html"), True),
        (ROUTE, Answer(503, (*JSON, (b"retry-after", b"1")), MISSING.replace(b"404", b"503")), True),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_right_is_left_alone(request_: Request, said: Answer, error: bool) -> None:
    assert list(wrong(request_, said)) == []
    assert is_error(said) == error


@pytest.mark.parametrize(
    ("request_", "said", "problem"),
    [
        (ROUTE, answer(MISSING.replace(b"404", b"500"), 500), "status 500"),
        (ROUTE, answer(MISSING.replace(b"404", b"503"), 503), "status 503"),
        (ROUTE, answer(MISSING, 400), "an error that is none"),
        (ROUTE, answer(OLD, 404), "an error of another dialect"),
        (ROUTE, answer(b"oh", 404), "not JSON"),
        (ROUTE, answer(b"NaN"), "not JSON"),
        (ROUTE, answer(b"7"), "neither"),
        (ROUTE, answer(b"<p>", 405, b"text/html"), ""),
        (ROUTE, answer(b"<p>", 403, b"text/html"), "from an agent"),
        (ROUTE, answer(b"x", kind=b"image/png"), "media type"),
        (replace(ROUTE, verb=b"HEAD"), answer(b"x"), "a body where"),
        (ROUTE, Answer(200, (*JSON, (b"x", b"a\r\nb")), b"{}"), "line break"),
        (ROUTE, Answer(200, (*JSON, (b"set-cookie", b"a=b")), b"{}"), "header of the client"),
        (CALL, answer(TASK.replace(b"7", b"8")), "an id that was not asked"),
        (CALL, answer(TASK.replace(b"7", b"null")), "a result for nobody"),
        (CALL, answer(TASK[:-1] + b',"error":{}}'), "an envelope"),
        (CALL, answer(GONE.replace(b"-32001", b'"x"')), "without code"),
        (CALL, stream("nonsense"), "an event that is none"),
        (CALL, stream("data: {"), "an event that is none"),
        (CALL, stream("data: " + TASK.decode().replace("7", "8")), "an id that was not asked"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told(request_: Request, said: Answer, problem: str) -> None:
    found = list(wrong(request_, said))
    assert any(problem in text for text in found) if problem else found == []


@pytest.mark.parametrize(
    "word",
    [
        "Traceback (most recent call last)",
        'File "x", line 3, in y',
        "KeyError: 'a'",
        "OperationalError: no such table",
        "psycopg.errors.StringDataRightTruncation",
        'SELECT "id" FROM "a2a_tasks_task"',
        "/home/alice/host",
        "<class 'int'>",
        "'NoneType' object is not subscriptable",
        "a2a_tasks.store",
        "'utf-8' codec can't decode byte 0xff",
    ],
)
def test_no_word_of_the_inside_escapes_it(word: str) -> None:
    said = answer(json.dumps({"error": {"code": 400, "message": word}}).encode(), 400)
    assert leaks(said)
    assert leaks(Answer(400, ((b"x-fault", word.encode()),), b""))


def test_a_long_word_is_read_once() -> None:
    """A word of 300 KB took minutes while a search began anew at each of its letters."""
    word = "a" * 300_000
    assert not leaks(answer(json.dumps({"text": word}).encode()))
    assert leaks(answer(json.dumps({"text": word + "ValueError: 1"}).encode()))
