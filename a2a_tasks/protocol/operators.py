"""What tells a message that did not come from the client: an operator gave it, or a page on which secrets are handed over.

docs/extensions.md describes them.
"""

__all__ = ["ANSWERED_BY", "HANDED_OVER", "HANDOVER", "OPERATOR", "RESERVED"]

#: In the metadata of a message an operator gave in the client's place.
ANSWERED_BY = "urn:a2a-host:answered-by"
#: Its value. Who it was is in the audit log, and for nobody else.
OPERATOR = "operator"
#: In the metadata of the message by which a task goes on after secrets were handed over: their names.
HANDED_OVER = "urn:a2a-host:handed-over"
#: In the metadata of an agent's message that asks for them: the page's URL, the names, and when the URL ends.
HANDOVER = "urn:a2a-host:handover"
#: No client may say these in the metadata of a message.
RESERVED = (ANSWERED_BY, HANDED_OVER)
