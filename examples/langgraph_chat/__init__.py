"""A chat graph of LangGraph: `A2A_APPS=examples.demo,examples.langgraph_chat make run`. docs/frameworks/langgraph.md."""
