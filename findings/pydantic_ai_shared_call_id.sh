#!/bin/sh
# Package:   pydantic-ai-slim 2.68.0 (PyPI)
# Behaviour: some servers give all calls of one answer the same id. Then no call is made and the run fails with
#            UnexpectedModelBehavior; the model is not told, and `retries` does not count. If the same id comes in two
#            answers, both calls are made.
# Output:    one answer: called []; UnexpectedModelBehavior; 1 request
#            two answers: called [1, 2]; done; 3 requests
# Run:       sh findings/pydantic_ai_shared_call_id.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet "pydantic-ai-slim[openai]==2.68.0"
cat > "$place/try.py" <<'PYTHON'
from pydantic_ai import Agent, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

ONE = [[1, 2]]
TWO = [[1], [2]]


def attempt(name, answers):
    called, asked = [], []

    def model(messages, info):
        asked.append(messages)
        if len(asked) > len(answers):
            return ModelResponse(parts=[TextPart("done")])
        numbers = answers[len(asked) - 1]
        return ModelResponse(
            parts=[ToolCallPart("add", {"number": n}, tool_call_id="call_0") for n in numbers]
        )

    agent = Agent(FunctionModel(model), retries=3)

    @agent.tool_plain
    def add(number: int) -> int:
        called.append(number)
        return number

    try:
        told = agent.run_sync("Add").output
    except UnexpectedModelBehavior as fault:
        told = type(fault).__name__
    several = "s" if len(asked) > 1 else ""
    print(f"{name}: called {called}; {told}; {len(asked)} request{several}")


attempt("one answer", ONE)
attempt("two answers", TWO)
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
one answer: called []; UnexpectedModelBehavior; 1 request
two answers: called [1, 2]; done; 3 requests
TEXT
cmp "$place/seen" "$place/expected"
