"""A planner that calls other agents, and asks before it books: `A2A_APPS=examples.demo,examples.travel make run`. docs/delegation.md."""
