"""A chat agent of pydantic-ai: `A2A_APPS=examples.demo,examples.pydantic_ai_chat make run`. docs/frameworks/pydantic-ai.md."""
