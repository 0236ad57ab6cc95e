"""The agents: one call hosts an executor."""

from a2a_frameworks import host
from a2a_tasks.agents import Skill
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
