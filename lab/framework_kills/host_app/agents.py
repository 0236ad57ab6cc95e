"""The agent, hosted."""

from __future__ import annotations

import importlib
import os

from a2a_frameworks import host
from a2a_tasks.agents import Skill

module = importlib.import_module(f"{__package__}.of_{os.environ['KILLS_FRAMEWORK']}")
SKILLS = [Skill("chat", "Chat", "Does as the prompt says.", tags=["test"])]
host(module.agent, slug="chat", skills=SKILLS)
