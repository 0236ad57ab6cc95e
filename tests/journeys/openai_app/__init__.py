"""An agent of the OpenAI Agents SDK with the tools of `chat_app`: for processes that are killed."""
