"""The name a task goes by below its parent: what its id adds to what the parent's already says."""

from __future__ import annotations

from posixpath import basename, dirname

from agentwatch.delegation.task import Task
from agentwatch.text import exact


def title(task: Task) -> str:
    """The short name of a task, never blank, foreign and unsanitised; where it comes of an id, no two look the same.

    `checkout.api` below `checkout` is `api`. A task that is known by its directory and agent goes by the directory
    while it is a root (the agent has a column of its own), and by the agent below another task.
    """
    parent, run = task.parent_id, task.run
    if parent is not None and task.task_id.startswith(parent + "."):
        return _exact(task.task_id[len(parent) + 1 :], task)
    if _is_stated(task):
        return _exact(task.task_id, task)
    if run is not None:
        words = run.prompt.opening if run.prompt is not None and task.is_session else ""
        return next((name for name in (run.title, words, run.agent) if name and name.strip()), _exact("", task))
    name = basename(task.task_id) or task.task_id
    if parent is not None or task.agent is None:
        return _exact(name, task)
    directory, separator, extra = task.task_id.partition("#")
    directory = dirname(directory) if basename(directory) == task.agent else directory
    return _exact((basename(directory) or name) + separator + extra, task)


def _exact(name: str, task: Task) -> str:
    """A part of an id; where that is blank, all of it."""
    return exact(name if name.strip() else task.task_id)


def _is_stated(task: Task) -> bool:
    """Whether a document itself gives this id: then a slash in it separates nothing."""
    documents = (task.packet, task.result)
    return any(document is not None and document.task_id == task.task_id for document in documents)
