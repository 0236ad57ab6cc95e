#!/bin/sh
# Package:   cloudevents 2.2.0 (PyPI) and cloudevents 10.0.0 (npm)
# Behaviour: in headers (binary mode), that of PyPI escapes blanks, `%` and letters beyond ASCII by percents, as the HTTP
#            binding of CloudEvents wants, and reads such escapes. That of npm does neither. So a subject with a blank
#            arrives changed in JavaScript, and one with escapes of its own arrives changed in Python. Booleans are `True`
#            from Python, where the specification has `true`. Structured mode keeps all of them.
# Output:    from Python: ce-subject table%20for%20two, ce-urgent True
#            in JavaScript: "table%20for%20two", urgent "True"
#            from JavaScript: ce-subject menus/a%20b.pdf
#            in Python: 'menus/a b.pdf'
# Run:       sh findings/cloudevents_escape_between_languages.sh   (needs Node.js 20, npm, python3 and PyPI; a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet cloudevents==2.2.0
npm install --prefix "$place" --silent --no-fund --no-audit cloudevents@10.0.0
cat > "$place/try.py" <<'PYTHON'
import json
import subprocess
import sys

from cloudevents.core.bindings.http import HTTPMessage, from_binary, to_binary
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

asked = {"type": "booked", "source": "/desk", "subject": "table for two", "urgent": True}
sent = to_binary(CloudEvent(asked, {"seats": 2}), JSONFormat())
told = sent.headers
print(f"from Python: ce-subject {told['ce-subject']}, ce-urgent {told['ce-urgent']}", flush=True)
given = json.dumps({"headers": told, "body": sent.body.decode()})
back = subprocess.run(["node", sys.argv[1]], input=given, capture_output=True, text=True, check=True)
*lines, last = back.stdout.splitlines()
print(*lines, sep="\n")
message = json.loads(last)
event = from_binary(HTTPMessage(message["headers"], message["body"].encode()), JSONFormat())
print(f"in Python: {event.get_subject()!r}")
PYTHON
cat > "$place/try.mjs" <<'JAVASCRIPT'
import fs from "node:fs";
import { CloudEvent, HTTP } from "cloudevents";

const event = HTTP.toEvent(JSON.parse(fs.readFileSync(0, "utf8")));
console.log(`in JavaScript: ${JSON.stringify(event.subject)}, urgent ${JSON.stringify(event.urgent)}`);
const menu = new CloudEvent({ type: "printed", source: "/desk", subject: "menus/a%20b.pdf", data: { pages: 2 } });
const sent = HTTP.binary(menu);
console.log(`from JavaScript: ce-subject ${sent.headers["ce-subject"]}`);
console.log(JSON.stringify(sent));
JAVASCRIPT
"$place/venv/bin/python" "$place/try.py" "$place/try.mjs" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(\(in\|from\) \(Python\|JavaScript\): .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
