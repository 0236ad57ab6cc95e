#!/bin/sh
# Package:   langgraph-checkpoint 4.3.2 (PyPI)
# Behaviour: JsonPlusSerializer stores half of a surrogate pair as "?", without an error or a warning, so a state that
#            was read back from a checkpoint differs from the state that was written. An integer beyond 64 bits raises.
# Output:    {'text': 'x?y'}
#            TypeError: Integer exceeds 64-bit range
# Run:       sh findings/langgraph_serializer_half_surrogate.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet langgraph-checkpoint==4.3.2
cat > "$place/try.py" <<'PYTHON'
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

serializer = JsonPlusSerializer()
print(serializer.loads_typed(serializer.dumps_typed({"text": "x\ud83dy"})))
try:
    serializer.dumps_typed({"number": 2**70})
    print("stored")
except TypeError as fault:
    print(f"TypeError: {fault}")
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
{'text': 'x?y'}
TypeError: Integer exceeds 64-bit range
TEXT
cmp "$place/seen" "$place/expected"
