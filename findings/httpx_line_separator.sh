#!/bin/sh
# Package:   httpx 0.28.1 (PyPI)
# Behaviour: Response.iter_lines (and aiter_lines) ends lines as str.splitlines does: also at U+2028, U+2029 and U+0085.
#            In server-sent events only CR and LF end lines, and JSON may hold these characters, so a reader of events
#            that is built on iter_lines gets half of such an event's JSON.
# Output:    U+2028: ['data: {"text":"a', 'b"}', '']
#            U+2029: ['data: {"text":"a', 'b"}', '']
#            U+0085: ['data: {"text":"a', 'b"}', '']
# Run:       sh findings/httpx_line_separator.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet httpx==0.28.1
cat > "$place/try.py" <<'PYTHON'
import httpx

for mark in "\u2028\u2029\u0085":
    body = f'data: {{"text":"a{mark}b"}}\n\n'.encode()
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    lines = list(httpx.Response(200, headers=headers, content=body).iter_lines())
    print(f"U+{ord(mark):04X}: {lines}")
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
U+2028: ['data: {"text":"a', 'b"}', '']
U+2029: ['data: {"text":"a', 'b"}', '']
U+0085: ['data: {"text":"a', 'b"}', '']
TEXT
cmp "$place/seen" "$place/expected"
