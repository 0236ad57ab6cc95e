"""The plug-in API for the `agents.py` of an app. See docs/agents.md."""

from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.calls import CallAnswer
from a2a_tasks.agents.conversation import Conversation
from a2a_tasks.agents.emission import data, file, link, text
from a2a_tasks.agents.faults import AgentError, BudgetSpent, CallRefused, FileUnavailable
from a2a_tasks.agents.skill import Extension, Provider, Skill
from a2a_tasks.agents.sources import Files, Secrets
from a2a_tasks.agents.steps import Journal
from a2a_tasks.agents.turn import ArtifactWriter, Turn
from a2a_tasks.protocol.values import Message, Part, Role

__all__ = [
    "Agent",
    "AgentError",
    "BudgetSpent",
    "CallAnswer",
    "CallRefused",
    "ArtifactWriter",
    "Conversation",
    "Extension",
    "FileUnavailable",
    "Files",
    "Journal",
    "Message",
    "Part",
    "Provider",
    "Role",
    "Secrets",
    "Skill",
    "Turn",
    "data",
    "file",
    "link",
    "text",
]
