"""A crew of CrewAI, hosted by one call. CHAT_URL is a server that speaks OpenAI's protocol."""

import os

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from a2a_frameworks import host
from a2a_tasks.agents import Skill
from lab.frameworks.tools import add, halve

llm = LLM(
    model=os.environ.get("CHAT_MODEL", "openai/scripted"),
    base_url=os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
    max_retries=0,
)
writer = Agent(
    role="Writer",
    goal="Answer",
    backstory="You are brief.",
    llm=llm,
    tools=[tool("add")(add), tool("halve")(halve)],
    max_retry_limit=0,
)
about = {"expected_output": "An answer.", "agent": writer}
answer = Task(description="Earlier: {history}\n{message}\n", **about)
review = Task(description="Answer this.\n{message}\n", human_input=True, **about)

SKILLS = [Skill("write", "Write", "Writes, and adds", tags=["text"])]
host(
    Crew(agents=[writer], tasks=[answer]),
    slug="crew",
    description="Answers.",
    skills=SKILLS,
)
host(
    Crew(agents=[writer], tasks=[review]),
    slug="reviewed-crew",
    description="Answers, and asks whether the answer is good.",
    skills=SKILLS,
)
