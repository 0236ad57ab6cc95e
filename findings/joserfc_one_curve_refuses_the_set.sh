#!/bin/sh
# Package:   joserfc 1.8.0, beside PyJWT 2.15.1 (PyPI)
# Behaviour: a JWK Set with one key on a curve that it does not know is refused whole, with a KeyError that is no
#            JoseError. RFC 7517 §5 wants such keys ignored, as it ignores those of an unknown `kty`. When an issuer adds
#            such a key beside the one that it signs with, a verifier refuses every token, or answers 500 where it
#            catches JoseError alone. PyJWT leaves out the key.
# Output:    joserfc: unknown kty: 1 key; unknown curve of EC: KeyError, a JoseError: False; unknown curve of OKP: KeyError, a JoseError: False
#            PyJWT: unknown kty: 1 key; unknown curve of EC: 1 key; unknown curve of OKP: 1 key
# Run:       sh findings/joserfc_one_curve_refuses_the_set.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet joserfc==1.8.0 "PyJWT[crypto]==2.15.1"
cat > "$place/try.py" <<'PYTHON'
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet
from jwt import PyJWKSet

signs = ECKey.generate_key("P-256", {"kid": "signs", "use": "sig"}).as_dict(private=False)
OTHERS = {
    "unknown kty": {"kty": "AKP", "kid": "new", "alg": "ML-DSA-44", "pub": "AAAA"},
    "unknown curve of EC": {**signs, "kid": "new", "crv": "brainpoolP256r1"},
    "unknown curve of OKP": {"kty": "OKP", "kid": "new", "crv": "Ed521", "x": "AAAA"},
}
readers = {
    "joserfc": lambda keys: KeySet.import_key_set(keys).keys,
    "PyJWT": lambda keys: PyJWKSet.from_dict(keys).keys,
}
for name, read in readers.items():
    seen = []
    for what, other in OTHERS.items():
        try:
            found = f"{len(read({'keys': [other, signs]}))} key"
        except Exception as fault:
            found = f"{type(fault).__name__}, a JoseError: {isinstance(fault, JoseError)}"
        seen.append(f"{what}: {found}")
    print(f"{name}: {'; '.join(seen)}")
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(PyJWT: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
