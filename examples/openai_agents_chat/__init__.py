"""A chat agent of the OpenAI Agents SDK: `A2A_APPS=examples.demo,examples.openai_agents_chat make run`. docs/frameworks/openai-agents.md."""
