#!/bin/sh
# Package:   google-re2 1.1.20251105 (PyPI)
# Behaviour: an empty match, as of `$`, `\b` and `(?m)^`, is found twice by `finditer`, `findall`, `split`, `sub` and `subn`
#            if the search passed over text to come to it. `re` finds it once. A mark that is put at the end of each line
#            by `sub` stands there twice. Where a search begins, as with `x*`, empty matches are found once.
# Output:    $ of 'hi': re 'hi!', re2 'hi!!'
#            (?m)$ of 'a\nb': re 'a!\nb!', re2 'a!!\nb!!'
#            (?m)^ of 'a\nb': re '!a\n!b', re2 '!a\n!!b'
#            \b of 'hi you': re '!hi! !you!', re2 '!hi!! !you!!'
#            x* of 'ab': re '!a!b!', re2 '!a!b!'
# Run:       sh findings/google_re2_finds_ends_twice.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet google-re2==1.1.20251105
cat > "$place/try.py" <<'PYTHON'
import re

import re2

for pattern, text in (
    ("$", "hi"),
    ("(?m)$", "a\nb"),
    ("(?m)^", "a\nb"),
    (r"\b", "hi you"),
    ("x*", "ab"),
):
    seen = f"re {re.sub(pattern, '!', text)!r}, re2 {re2.sub(pattern, '!', text)!r}"
    print(f"{pattern} of {text!r}: {seen}")
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(.* of .*: re .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
