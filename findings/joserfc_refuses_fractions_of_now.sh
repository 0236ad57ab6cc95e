#!/bin/sh
# Package:   joserfc 1.8.0 and Authlib 1.9.10, beside PyJWT 2.15.1 (PyPI)
# Behaviour: a NumericDate may have a fraction (RFC 7519 §2), and `time.time()` of Python gives one. Both cut the fraction of
#            their own clock, but not that of the claims. So a token whose `iat` or `nbf` is now is refused until the next
#            second begins, also by the package that made it. A client that calls a host with a new token gets 401, and
#            finds no fault when it tries the token by hand. PyJWT cuts both sides. A leeway of 1 s mends it, and in joserfc
#            `JWTClaimsRegistry(now=time.time)`.
# Output:    joserfc, iat: at once InvalidClaimError, with leeway accepted, in the next second accepted
#            joserfc, nbf: at once InvalidClaimError, with leeway accepted, in the next second accepted
#            Authlib, iat: at once InvalidTokenError, with leeway accepted, in the next second accepted
#            Authlib, nbf: at once InvalidTokenError, with leeway accepted, in the next second accepted
#            PyJWT, iat: at once accepted, with leeway accepted, in the next second accepted
#            PyJWT, nbf: at once accepted, with leeway accepted, in the next second accepted
#            joserfc with now=time.time: accepted
# Run:       sh findings/joserfc_refuses_fractions_of_now.sh   (needs python3 and PyPI; half a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet joserfc==1.8.0 authlib==1.9.10 pyjwt==2.15.1
cat > "$place/try.py" <<'PYTHON'
import time

import jwt as pyjwt
from authlib.jose import jwt as authlib
from joserfc import jwt as joserfc
from joserfc.jwk import OctKey
from joserfc.jwt import JWTClaimsRegistry

SECRET = "a secret of thirty-two characters"
KEY = OctKey.import_key(SECRET)


def ask_joserfc(claims, leeway, **clock):
    token = joserfc.encode({"alg": "HS256"}, claims, KEY)
    JWTClaimsRegistry(leeway=leeway, **clock).validate(joserfc.decode(token, KEY).claims)


def ask_authlib(claims, leeway):
    token = authlib.encode({"alg": "HS256"}, claims, SECRET)
    authlib.decode(token, SECRET).validate(leeway=leeway)


def ask_pyjwt(claims, leeway):
    token = pyjwt.encode(claims, SECRET, "HS256")
    pyjwt.decode(token, SECRET, ["HS256"], leeway=leeway)


def judge(ask, *given, **more):
    try:
        ask(*given, **more)
    except Exception as refusal:
        return type(refusal).__name__
    return "accepted"


def judge_within_a_second(ask, claim):
    """Judge claims of now, at once and with a leeway; again if a second began meanwhile."""
    while True:
        now = time.time()
        claims = {"sub": "planner", claim: now}
        found = judge(ask, claims, 0), judge(ask, claims, 1)
        if int(time.time()) == int(now):
            return claims, *found


for name, ask in (("joserfc", ask_joserfc), ("Authlib", ask_authlib), ("PyJWT", ask_pyjwt)):
    for claim in ("iat", "nbf"):
        claims, at_once, with_leeway = judge_within_a_second(ask, claim)
        time.sleep(1)
        later = judge(ask, claims, 0)
        print(f"{name}, {claim}: at once {at_once}, with leeway {with_leeway}, in the next second {later}")
print("joserfc with now=time.time:", judge(ask_joserfc, {"iat": time.time()}, 0, now=time.time))
PYTHON
"$place/venv/bin/python" -W ignore "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(\(joserfc\|Authlib\|PyJWT\)[, ].*: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
