"""Metadata keys of messages that do not come from the client but from an operator or a page for secrets.

docs/clients.md describes them.
"""

__all__ = [
    "ANSWERED_BY",
    "ASKED_BY",
    "CALLS",
    "DELEGATION",
    "HANDED_OVER",
    "HANDOVER",
    "OPERATOR",
    "RESERVED",
]

#: In the metadata of a message that an operator wrote in the client's place.
ANSWERED_BY = "urn:a2a-host:answered-by"
#: The value of that key. The operator's name is only in the audit log.
OPERATOR = "operator"
#: In the metadata of the message that resumes a task after secrets were handed over: the names of the secrets.
HANDED_OVER = "urn:a2a-host:handed-over"
#: In the metadata of an agent's message that asks for secrets: the page's URL, their names, and the URL's expiry.
HANDOVER = "urn:a2a-host:handover"
#: In the metadata of a message with which an agent calls another one: the tasks and agents that it descends from.
DELEGATION = "urn:a2a-host:delegation"
#: In the metadata of a status: the agents and tasks for which the task waits.
CALLS = "urn:a2a-host:calls"
#: In the metadata of a question that a called agent asks: its agent and its task. The host restates it in the calling task.
ASKED_BY = "urn:a2a-host:asked-by"
#: Clients may not use these keys in the metadata of a message.
RESERVED = (ANSWERED_BY, HANDED_OVER, DELEGATION)
