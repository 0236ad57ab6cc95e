"""Redaction of credentials in log lines, reports of errors, and tool events of agents. It finds most of them, not all.

The texts are strangers' words. So each is bounded before the patterns see it, and no pattern needs more than linear time
(`tests/unit/test_patterns.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.conf import settings

from a2a_tasks.conf import conf, read_environment_keys

__all__ = ["REDACTED", "redact", "redact_value"]

REDACTED = "[redacted]"
#: Shortest secret that is redacted: shorter ones would match parts of words.
MIN_SECRET_LENGTH = 8
#: Maximum nesting of values whose texts are redacted; deeper values are replaced.
MAX_DEPTH = 64
#: Maximum number of characters that are kept of a text; of longer ones, both ends are.
MAX_LENGTH = 24 * 1024
#: Number of characters beside a cut that may be a part of a secret.
MARGIN = 4096
#: Endings of names whose values are secrets.
NAMES = r"(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|credentials?|authorization|cookie|signature)"
#: Patterns of secrets, and their replacements. A pattern that has begun must end where it stands, or pass over what it
#: has read: one that reads on for a character that is not there is tried again at each of its beginnings in between.
SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(a2a_[a-z2-7]{12})_[\w-]+"), rf"\1_{REDACTED}"),  # API keys of this host
    (re.compile(r"\b(whsec_|sk-|gh[pousr]_|xox[a-z]-|AKIA)[\w/+=-]{8,}"), rf"\1{REDACTED}"),
    (re.compile(r"\beyJ[\w-]{8,}(?:\.+[\w-]+)*"), REDACTED),  # JWTs, and other JSON in base64
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END|\Z)", re.DOTALL), REDACTED),
    (re.compile(r"(?i)\b(bearer|basic|digest|negotiate)\s+[\w.~+/=-]{6,}"), rf"\1 {REDACTED}"),
    (re.compile(r"://[^/\s@]+@"), f"://{REDACTED}@"),  # credentials in URLs
    (re.compile(r"([?&](?:key|sig|code)=)[^\s&#\"']+", re.IGNORECASE), rf"\1{REDACTED}"),
    (
        re.compile(
            rf"({NAMES}[\"']?\s*[=:]\s*[\"']?)(?!bearer|basic|\[redacted)[^\s\"'&,;}})]+",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
)

_NAMED = re.compile(rf"{NAMES}\Z", re.IGNORECASE)


def redact(text: str, length: int = MAX_LENGTH) -> str:
    """Return the text without this process's own secrets and without values that look like credentials.

    A text of more than `length` characters is cut to its two ends. No part of a secret is left beside the cut.
    """
    if len(text) <= length:
        return _redact(text)
    half = max(1, length // 2)
    if len(text) <= 2 * (half + MARGIN):
        start = rest = _redact(text)
    else:
        start, rest = (
            _redact(text[: half + MARGIN])[:-MARGIN],
            _redact(text[-half - MARGIN :])[MARGIN:],
        )
    return f"{start[:half]} … [cut, {len(text)} characters] … {rest[-half:]}"


def _redact(text: str) -> str:
    for secret in _own():
        text = text.replace(secret, REDACTED)
    for shape, left in SHAPES:
        text = shape.sub(left, text)
    return text


def redact_value(value: Any, name: str = "", depth: int = MAX_DEPTH) -> Any:
    """Return a JSON value with its texts redacted, and without texts and numbers under the name of a secret."""
    match value:
        case dict() | list() if not depth:
            return REDACTED
        case dict():
            return {
                redact(key): redact_value(member, key, depth - 1) for key, member in value.items()
            }
        case list():
            return [redact_value(item, name, depth - 1) for item in value]
        case None | bool():
            return value
    if _NAMED.search(name):
        return REDACTED
    return redact(value) if isinstance(value, str) else value


def _own() -> Iterable[str]:
    """Return the secrets of this process itself."""
    lists = (conf.SECRET_KEYS, conf.WEBHOOK_SECRETS, conf.AUDIT_KEYS)
    one_by_one = [secret.strip() for secrets in lists for secret in str(secrets).split(",")]
    environments = (str(conf.ENVIRONMENT_KEY), *read_environment_keys().values())
    django = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    secrets = (*django, settings.DATABASES["default"].get("PASSWORD"), *one_by_one, *environments)
    return [secret for secret in secrets if secret and len(secret) >= MIN_SECRET_LENGTH]
