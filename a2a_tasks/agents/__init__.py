"""The plug-in API for the `agents.py` of an app. See docs/agents.md."""

from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.content import data, file, link, text
from a2a_tasks.agents.conversation import Conversation
from a2a_tasks.agents.faults import AgentError, BudgetSpent, FileUnavailable
from a2a_tasks.agents.files import Files
from a2a_tasks.agents.http import CallRefused
from a2a_tasks.agents.secrets import Secrets
from a2a_tasks.agents.skill import Extension, Provider, Skill
from a2a_tasks.agents.steps import Journal
from a2a_tasks.agents.turn import ArtifactWriter, Turn
from a2a_tasks.protocol.values import Message, Part, Role

__all__ = [
    "Agent",
    "AgentError",
    "BudgetSpent",
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
