"""The planner as an agent of pydantic-ai: the others are its tools. CHAT_MODEL names a model; without it, CHAT_URL is asked."""

import os

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from a2a_frameworks import host
from a2a_frameworks.pydantic_ai import tools_for
from a2a_tasks.agents import Skill

URL = os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1")
supervisor = Agent(
    os.environ.get("CHAT_MODEL")
    or OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=URL, api_key="none")),
    instructions="Find a flight and a hotel at once, then book both.",
    output_type=[str, DeferredToolRequests],
    toolsets=[tools_for("flights", "hotels"), tools_for("booking").approval_required()],
    defer_model_check=True,
)

SKILLS = [Skill("plan", "Plan", "Plans and books a trip, if you allow it", tags=["travel"])]
host(
    supervisor,
    slug="travel-agent",
    description="Plans and books a trip.",
    skills=SKILLS,
    calls=("flights", "hotels", "booking"),
)
