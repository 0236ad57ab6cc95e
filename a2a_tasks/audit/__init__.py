"""The audit log's actions and hash chain: names, values and hashes, without I/O.

`actions` is the table of all recorded actions, `actor` identifies who acts, `chain` links entries so that none can be
altered unnoticed. `store/audit.py` writes them.
"""

from a2a_tasks.audit.actions import HOST_WIDE, Action
from a2a_tasks.audit.actor import act_as, actor, request_id_of, staff, system

__all__ = ["HOST_WIDE", "Action", "act_as", "actor", "request_id_of", "staff", "system"]
