"""The agents: one call hosts an executor."""

from a2a_frameworks import host
from a2a_tasks.agents import Skill
from lab.frameworks.executor_v03.executors import HelloExecutor, PoemExecutor

host(
    HelloExecutor(),
    slug="hello-03",
    skills=[Skill("hello", "Hello", "Says hello", tags=["hello"])],
    replies_directly=True,
)
host(
    PoemExecutor(),
    slug="poem-03",
    skills=[Skill("recite", "Recite", "Asks for a word, and recites", tags=["poem"])],
)
