"""The agents: one call hosts an executor."""

from a2a_tasks.agents import Skill
from a2a_tasks.frameworks import host
from examples.executors.executors import HelloExecutor, PoemExecutor

host(
    HelloExecutor(),
    slug="hello",
    skills=[Skill("hello", "Hello", "Says hello", tags=["hello"], examples=["hi"])],
)
host(
    PoemExecutor(),
    slug="poem",
    skills=[Skill("recite", "Recite", "Asks for a word, and recites", tags=["poem"])],
)
