"""A crew of CrewAI."""
