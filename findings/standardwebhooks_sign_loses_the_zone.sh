#!/bin/sh
# Package:   standardwebhooks 1.1.0, svix 2.9.1 (PyPI)
# Behaviour: `Webhook.sign` takes a datetime, and replaces its time zone by UTC instead of converting it. The signature
#            of a moment that is written in another zone is that of another moment, hours away, so `verify` of the same
#            library refuses it. A naive `datetime.now()` verifies only where the clock of the process is UTC: tests
#            pass, and the first host elsewhere sends webhooks that nobody takes.
# Output:    standardwebhooks: UTC taken, +02:00 refused, naive in UTC taken, naive in Berlin refused
#            svix: UTC taken, +02:00 refused, naive in UTC taken, naive in Berlin refused
# Run:       sh findings/standardwebhooks_sign_loses_the_zone.sh   (needs python3 and PyPI; half a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet standardwebhooks==1.1.0 svix==2.9.1
cat > "$place/try.py" <<'PYTHON'
import os
import time
from datetime import datetime, timedelta, timezone

import standardwebhooks
import svix.webhooks

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = '{"task": "1"}'


def take(library, moment):
    """Sign the moment as a sender does, which sends its Unix time, and verify as a receiver does."""
    receiver = library.Webhook(SECRET)
    headers = {"id": "msg_1", "timestamp": str(int(moment.timestamp()))}
    headers["signature"] = receiver.sign("msg_1", moment, BODY)
    try:
        receiver.verify(BODY, {f"webhook-{name}": value for name, value in headers.items()})
    except library.WebhookVerificationError:
        return "refused"
    return "taken"


def now_in(zone):
    os.environ["TZ"] = zone
    time.tzset()
    return datetime.now()


for library in (standardwebhooks, svix.webhooks):
    now = datetime.now(timezone.utc)
    seen = {"UTC": take(library, now)}
    seen["+02:00"] = take(library, now.astimezone(timezone(timedelta(hours=2))))
    seen["naive in UTC"] = take(library, now_in("UTC0"))
    seen["naive in Berlin"] = take(library, now_in("CET-1CEST,M3.5.0,M10.5.0/3"))
    name = library.__name__.partition(".")[0]
    print(f"{name}: {', '.join(' '.join(one) for one in seen.items())}")
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(svix: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
