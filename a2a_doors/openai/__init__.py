"""The door for clients of OpenAI's API: models and chat completions."""

from a2a_doors.openai.endpoint import serve

__all__ = ["serve"]
