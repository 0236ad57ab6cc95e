"""Metadata keys of messages that do not come from the client but from an operator or a page for secrets.

docs/clients.md describes them.
"""

__all__ = ["ANSWERED_BY", "HANDED_OVER", "HANDOVER", "OPERATOR", "RESERVED"]

#: In the metadata of a message that an operator wrote in the client's place.
ANSWERED_BY = "urn:a2a-host:answered-by"
#: The value of that key. The operator's name is only in the audit log.
OPERATOR = "operator"
#: In the metadata of the message that resumes a task after secrets were handed over: the names of the secrets.
HANDED_OVER = "urn:a2a-host:handed-over"
#: In the metadata of an agent's message that asks for secrets: the page's URL, their names, and the URL's expiry.
HANDOVER = "urn:a2a-host:handover"
#: Clients may not use these keys in the metadata of a message.
RESERVED = (ANSWERED_BY, HANDED_OVER)
