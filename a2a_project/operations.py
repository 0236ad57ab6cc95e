"""THE TABLE: every operation of the protocol and its function. Read this file first.

Bindings get this table and call nothing else, so that they cannot differ.
"""

from __future__ import annotations

from a2a_push.operations.push_configs import (
    create_push_config,
    delete_push_config,
    get_push_config,
    list_push_configs,
)
from a2a_tasks.operations.cancel_task import cancel_task
from a2a_tasks.operations.cards import get_agent_card, get_extended_agent_card
from a2a_tasks.operations.handler import OperationHandler, OperationTable
from a2a_tasks.operations.reads import get_task, list_tasks
from a2a_tasks.operations.send_message import send_message
from a2a_tasks.operations.send_streaming_message import send_streaming_message
from a2a_tasks.operations.subscribe_to_task import subscribe_to_task
from a2a_tasks.protocol import catalogue as a2a

__all__ = ["TABLE"]

_ROWS = (
    OperationHandler(a2a.SEND_MESSAGE, send_message, has_files=True),
    OperationHandler(a2a.SEND_STREAMING_MESSAGE, send_streaming_message, has_files=True),
    OperationHandler(a2a.GET_TASK, get_task, waits_for_database=True, has_files=True),
    OperationHandler(a2a.LIST_TASKS, list_tasks, waits_for_database=True, has_files=True),
    OperationHandler(a2a.CANCEL_TASK, cancel_task, waits_for_database=True, has_files=True),
    OperationHandler(
        a2a.SUBSCRIBE_TO_TASK, subscribe_to_task, waits_for_database=True, has_files=True
    ),
    OperationHandler(a2a.CREATE_PUSH_CONFIG, create_push_config, waits_for_database=True),
    OperationHandler(a2a.GET_PUSH_CONFIG, get_push_config, waits_for_database=True),
    OperationHandler(a2a.LIST_PUSH_CONFIGS, list_push_configs, waits_for_database=True),
    OperationHandler(a2a.DELETE_PUSH_CONFIG, delete_push_config, waits_for_database=True),
    OperationHandler(a2a.GET_AGENT_CARD, get_agent_card),
    OperationHandler(a2a.GET_EXTENDED_AGENT_CARD, get_extended_agent_card),
)
TABLE: OperationTable = {row.operation.name: row for row in _ROWS}
