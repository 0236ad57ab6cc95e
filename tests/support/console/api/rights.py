"""Who may what: every route of the API by its name in OpenAPI, with the scope and the permission it asks for."""

from __future__ import annotations

from typing import Any

__all__ = ["BODIES", "EXPORTS", "OF_THE_HOST", "OPERATED", "RIGHTS"]

READ, WRITE, KEYS = "admin:read", "admin:write", "admin:keys"

RIGHTS: dict[str, tuple[str, str]] = {
    "list_agents": (READ, "a2a_tasks.view_task"),
    "get_agent": (READ, "a2a_tasks.view_task"),
    "switch_agent": (WRITE, "a2a_tasks.change_agentswitch"),
    "list_workers": (READ, "a2a_tasks.view_worker"),
    "list_budgets": (READ, "a2a_tasks.view_budget"),
    "get_budget": (READ, "a2a_tasks.view_budget"),
    "list_budget_uses": (READ, "a2a_tasks.view_budgetuse"),
    "get_budget_use": (READ, "a2a_tasks.view_budgetuse"),
    "allow_budget_use": (WRITE, "a2a_tasks.change_budgetuse"),
    "refuse_budget_use": (WRITE, "a2a_tasks.change_budgetuse"),
    "list_tasks": (READ, "a2a_tasks.view_task"),
    "get_task": (READ, "a2a_tasks.view_task"),
    "cancel_task": (WRITE, "a2a_tasks.change_task"),
    "answer_task": (WRITE, "a2a_tasks.answer_task"),
    "assign_task": (WRITE, "a2a_tasks.answer_task"),
    "make_handover_link": (WRITE, "a2a_tasks.answer_task"),
    "list_waiting": (READ, "a2a_tasks.view_task"),
    "run_task_again": (WRITE, "a2a_tasks.run_again_task"),
    "cancel_tasks": (WRITE, "a2a_tasks.change_task"),
    "run_tasks_again": (WRITE, "a2a_tasks.run_again_task"),
    "export_tasks": (READ, "a2a_tasks.view_task"),
    "list_task_events": (READ, "a2a_tasks.view_task"),
    "list_task_runs": (READ, "a2a_tasks.view_run"),
    "get_task_diagnosis": (READ, "a2a_tasks.view_task"),
    "list_contexts": (READ, "a2a_tasks.view_context"),
    "get_context": (READ, "a2a_tasks.view_context"),
    "list_runs": (READ, "a2a_tasks.view_run"),
    "get_run": (READ, "a2a_tasks.view_run"),
    "list_run_lines": (READ, "a2a_tasks.view_run"),
    "get_statistics": (READ, "a2a_tasks.view_task"),
    "get_usage": (READ, "a2a_tasks.view_task"),
    "list_keys": (READ, "a2a_tasks.view_apikey"),
    "get_key": (READ, "a2a_tasks.view_apikey"),
    "create_key": (KEYS, "a2a_tasks.add_apikey"),
    "rotate_key": (KEYS, "a2a_tasks.change_apikey"),
    "revoke_key": (KEYS, "a2a_tasks.change_apikey"),
    "list_webhook_configs": (READ, "a2a_push.view_pushconfig"),
    "get_webhook_config": (READ, "a2a_push.view_pushconfig"),
    "enable_webhook_config": (WRITE, "a2a_push.change_pushconfig"),
    "list_deliveries": (READ, "a2a_push.view_delivery"),
    "get_delivery": (READ, "a2a_push.view_delivery"),
    "try_delivery_now": (WRITE, "a2a_push.change_delivery"),
    "replay_delivery": (WRITE, "a2a_push.change_delivery"),
    "replay_deliveries": (WRITE, "a2a_push.change_delivery"),
    "list_receivers": (READ, "a2a_push.view_receiver"),
    "get_receiver": (READ, "a2a_push.view_receiver"),
    "enable_receiver": (WRITE, "a2a_push.change_receiver"),
    "disable_receiver": (WRITE, "a2a_push.change_receiver"),
}
#: What a change needs to be told.
BODIES: dict[str, Any] = {
    "answer_task": {"text": "blue"},
    "allow_budget_use": {"amount": "5"},
    "assign_task": {"to": None},
    "cancel_tasks": {"all": True},
    "run_tasks_again": {"all": True},
    "create_key": {"name": "robot"},
    "switch_agent": {"state": "draining", "reason": "deploy"},
    "disable_receiver": {"reason": "too loud"},
    "replay_deliveries": {"all": True},
}
#: What is sent by a POST, since it is written down, and changes nothing.
EXPORTS = {"export_tasks"}
#: What is told and set of the whole host: nothing of it is there for operators of a tenant.
OF_THE_HOST = {
    *("switch_agent", "list_workers", "list_run_lines", "list_budgets", "get_budget"),
    *("list_budget_uses", "get_budget_use", "allow_budget_use", "refuse_budget_use"),
}
#: What is open without a scope, too, to whoever operates the agent: the rows of this agent, and nothing else.
OPERATED = {
    *("answer_task", "assign_task", "make_handover_link", "list_waiting"),
    *("list_agents", "get_agent", "list_tasks", "get_task", "cancel_task", "list_task_events"),
    *("list_task_runs", "list_contexts", "get_context", "list_runs", "get_run"),
    "list_run_lines",
    *("get_task_diagnosis", "get_statistics", "get_usage", "cancel_tasks", "export_tasks"),
    *("list_deliveries", "get_delivery", "try_delivery_now", "replay_delivery"),
    "replay_deliveries",
}
