"""Agents that ask the model server at CHAT_URL, and note each report of usage in the file USAGE_TRACE before it is made."""
