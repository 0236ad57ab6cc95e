"""The statements in the folder `backend/sql`, one a file. A file whose name begins with an underscore is a part of others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_sql"]

FOLDER = Path(__file__).parent / "backend" / "sql"
COMMENT, FIELD = re.compile(r"^--.*\n", re.MULTILINE), re.compile(r"\{(\w+)\}")


def read_sql(name: str, **fields: str) -> str:
    """Return the statement in `sql/<name>.sql`, without its comments.

    Each `{field}` in it is replaced by the value of this name, else by the file of this name.
    """
    text = COMMENT.sub("", (FOLDER / f"{name}.sql").read_text(encoding="utf-8")).strip()
    return FIELD.sub(lambda found: _fill(found[1], fields), text)


def _fill(field: str, fields: Mapping[str, str]) -> str:
    return fields[field] if field in fields else read_sql(field, **fields)
