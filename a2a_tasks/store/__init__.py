"""The only code that writes tasks. Functions here are synchronous, one transaction each; `run_in_thread` runs them.

`accept` and `reply` put a message and its run into the log, `append` the agent's events, `cancel` and `runs` take
tasks away from agents; `tasks` and `log` read. Statements in SQL have an ORM twin for SQLite, held by one contract
suite.
"""
