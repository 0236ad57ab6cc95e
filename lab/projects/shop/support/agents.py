"""The shop's agent."""

from a2a_tasks.agents import Agent, Skill, file


class Support(Agent):
    """It repeats what it is told, and gives a large file back."""

    name = "Support"
    description = "Repeats the text."
    skills = [Skill("repeat", "Repeat", "Repeats the text", tags=["text"])]

    async def run(self, turn):
        """Answer."""
        yield turn.text
        if turn.text == "file":
            yield turn.artifact(
                file(b"x" * 100_000, "large.bin", "application/octet-stream"), name="large"
            )
