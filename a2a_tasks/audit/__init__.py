"""What is written down of who did what, and how it is chained: names, values and hashes, without I/O.

`actions` is the table of everything that is written down, `actor` says who acts, `chain` links entries so that none
can be altered unseen. `store/audit.py` writes.
"""

from a2a_tasks.audit.actions import HOST_WIDE, Action
from a2a_tasks.audit.actor import acting, actor, request_named, staff, system

__all__ = ["HOST_WIDE", "Action", "acting", "actor", "request_named", "staff", "system"]
