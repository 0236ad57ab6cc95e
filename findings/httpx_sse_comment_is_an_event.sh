#!/bin/sh
# Package:   httpx-sse 0.4.3 (PyPI), with which a2a-sdk before 1.0 reads streams
# Behaviour: an empty line is an event once an event had an id: so is the one behind a comment. In server-sent events a
#            block without data is none. a2a-sdk 0.2.16 reads JSON of its empty data and fails; later ones leave it out.
# Output:    [('1', 'a'), ('1', ''), ('2', 'b')]
# Run:       sh findings/httpx_sse_comment_is_an_event.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet httpx==0.28.1 httpx-sse==0.4.3
cat > "$place/try.py" <<'PYTHON'
import httpx
from httpx_sse import EventSource

body = b"id: 1\ndata: a\n\n: a comment\n\nid: 2\ndata: b\n\n"
response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
print([(event.id, event.data) for event in EventSource(response).iter_sse()])
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
echo "[('1', 'a'), ('1', ''), ('2', 'b')]" > "$place/expected"
cmp "$place/seen" "$place/expected"
