"""Addresses below `/api/v1/`, of agents, tasks, contexts, runs and keys."""

from django.urls import path

from a2a_tasks.api.agents import AgentList, AgentOne
from a2a_tasks.api.contexts import ContextList, ContextOne
from a2a_tasks.api.events import TaskEvents
from a2a_tasks.api.figures import FiguresNow
from a2a_tasks.api.keys import KeyList, KeyOne, KeyRevoke, KeyRotate
from a2a_tasks.api.many import TasksAgain, TasksCancel, TasksExport
from a2a_tasks.api.run_lines import RunLines
from a2a_tasks.api.runs import RunList, RunOne, TaskRuns
from a2a_tasks.api.standing import TaskStanding
from a2a_tasks.api.tasks import TaskAgain, TaskCancel, TaskList, TaskOne
from a2a_tasks.api.waiting import TaskAnswer, TaskAssign, TaskHandover, WaitingList
from a2a_tasks.api.workers import WorkerList

urlpatterns = [
    path("agents", AgentList.as_view()),
    path("agents/<slug:slug>", AgentOne.as_view()),
    path("tasks", TaskList.as_view()),
    path("tasks/cancel", TasksCancel.as_view()),
    path("tasks/run-again", TasksAgain.as_view()),
    path("tasks/export", TasksExport.as_view()),
    path("tasks/<int:key>", TaskOne.as_view()),
    path("tasks/<int:key>/cancel", TaskCancel.as_view()),
    path("tasks/<int:key>/answer", TaskAnswer.as_view()),
    path("tasks/<int:key>/assign", TaskAssign.as_view()),
    path("tasks/<int:key>/handover", TaskHandover.as_view()),
    path("waiting", WaitingList.as_view()),
    path("tasks/<int:key>/run-again", TaskAgain.as_view()),
    path("tasks/<int:key>/events", TaskEvents.as_view()),
    path("tasks/<int:key>/runs", TaskRuns.as_view()),
    path("tasks/<int:key>/standing", TaskStanding.as_view()),
    path("contexts", ContextList.as_view()),
    path("contexts/<int:key>", ContextOne.as_view()),
    path("runs", RunList.as_view()),
    path("runs/<int:key>", RunOne.as_view()),
    path("runs/<int:key>/lines", RunLines.as_view()),
    path("workers", WorkerList.as_view()),
    path("figures", FiguresNow.as_view()),
    path("keys", KeyList.as_view()),
    path("keys/<slug:prefix>", KeyOne.as_view()),
    path("keys/<slug:prefix>/rotate", KeyRotate.as_view()),
    path("keys/<slug:prefix>/revoke", KeyRevoke.as_view()),
]
