"""An agent of the Agent Development Kit, hosted by one call. CHAT_URL is a server that speaks OpenAI's protocol."""

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask GitHub

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.tools import FunctionTool

from a2a_frameworks import host
from a2a_tasks.agents import Skill
from lab.frameworks.tools import add, halve, pay

chat = LlmAgent(
    name="chat",
    instruction="Be brief.",
    model=LiteLlm(
        os.environ.get("CHAT_MODEL", "openai/scripted"),
        api_base=os.environ.get("CHAT_URL", "http://127.0.0.1:8123/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
        max_retries=0,
    ),
    tools=[add, halve, FunctionTool(pay, require_confirmation=True)],
)

SKILLS = [Skill("chat", "Chat", "Talks, adds, and pays if you allow it", tags=["chat"])]
host(chat, slug="adk-chat", description="Talks with you.", skills=SKILLS)
