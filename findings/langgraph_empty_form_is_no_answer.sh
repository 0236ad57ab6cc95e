#!/bin/sh
# Package:   langgraph 1.2.22 (PyPI)
# Behaviour: `Command(resume={})` answers nothing. A dict whose keys are all ids of interrupts is taken for a map from
#            interrupts to answers, and an empty dict has no other key: the graph stops at the same question again, without
#            an error, although every other empty value is an answer. So nobody can leave a form empty. The id of the
#            interrupt as key helps: `Command(resume={id: {}})`.
# Output:    resumed with []: []
#            resumed with '': ''
#            resumed with {'name': ''}: {'name': ''}
#            resumed with {}: asked again
#            resumed with {} by the id: {}
# Run:       sh findings/langgraph_empty_form_is_no_answer.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet langgraph==1.2.22
cat > "$place/try.py" <<'PYTHON'
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    form: Any


graph = StateGraph(State)
graph.add_node("ask", lambda _: {"form": interrupt("Any wishes?")})
graph.add_edge(START, "ask")
graph.add_edge("ask", END)
graph = graph.compile(checkpointer=InMemorySaver())


def answer(value, by_id=False):
    config = {"configurable": {"thread_id": f"{value!r} {by_id}"}}
    (asked,) = graph.invoke({}, config)["__interrupt__"]
    ended = graph.invoke(Command(resume={asked.id: value} if by_id else value), config)
    seen = "asked again" if "__interrupt__" in ended else repr(ended["form"])
    print(f"resumed with {value!r}{' by the id' if by_id else ''}: {seen}")


for value in ([], "", {"name": ""}, {}):
    answer(value)
answer({}, by_id=True)
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(resumed with .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
