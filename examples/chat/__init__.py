"""A chat without a framework: `A2A_APPS=examples.demo,examples.chat make run`."""
