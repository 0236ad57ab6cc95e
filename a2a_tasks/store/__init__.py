"""The only code that writes tasks. Functions here are synchronous, one transaction each; `run_in_thread` runs them.

`accept` and `replies` put a message and its run into the log, `append` the agent's events, `cancel` and `runs` take
tasks away from agents; `tasks` and `event_log` read. `backend` has the SQL and its twin by the ORM.
"""
