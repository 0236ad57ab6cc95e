"""An agent of pydantic-ai whose tools leave traces in a file: for processes that are killed."""
