#!/bin/sh
# Package:   msgspec 0.23.0, beside pydantic 2.14.4 (PyPI)
# Behaviour: fractions of more than six digits, as .NET (seven) and Go (nine) write them, are rounded, and not cut as Python
#            and pydantic do. So the last moment of a day is read as the next day, and as a time without a date it becomes
#            midnight, which is before all others. The largest date of .NET, which stands for "never", is refused.
# Output:    2026-12-31T23:59:59.9999999Z: msgspec 2027-01-01 00:00:00+00:00, pydantic 2026-12-31 23:59:59.999999+00:00
#            23:59:59.9999999: msgspec 00:00:00, pydantic 23:59:59.999999
#            9999-12-31T23:59:59.9999999: msgspec ValidationError, pydantic 9999-12-31 23:59:59.999999
# Run:       sh findings/msgspec_rounds_into_the_next_day.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet msgspec==0.23.0 pydantic==2.14.4
cat > "$place/try.py" <<'PYTHON'
from datetime import datetime, time

import msgspec
from pydantic import TypeAdapter

for text, kind in (
    ("2026-12-31T23:59:59.9999999Z", datetime),
    ("23:59:59.9999999", time),
    ("9999-12-31T23:59:59.9999999", datetime),
):
    body = msgspec.json.encode(text)
    try:
        seen = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as fault:
        seen = type(fault).__name__
    print(f"{text}: msgspec {seen}, pydantic {TypeAdapter(kind).validate_json(body)}")
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \([0-9:.T-]*: msgspec .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
