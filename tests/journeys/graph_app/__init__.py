"""An app with one graph of LangGraph, for hosts that are killed. It is the agent of `chat_app`."""
