"""Webhooks in the management API, below `/api/v1/webhooks/`: who is told of what, how that went, and sending it again.

It stands in the rooms of the tasks' API and uses their furniture, and the words of the back office for why something waits.
"""
