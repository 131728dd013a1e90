"""The name a task goes by below its parent: what its id adds to what the parent's already says."""

from __future__ import annotations

from posixpath import basename, dirname

from agentwatch.delegation.task import Task


def title(task: Task) -> str:
    """The short name of a task, foreign and unsanitised.

    `checkout.api` below `checkout` is `api`. A task that is known by its directory and agent goes by the directory
    while it is a root (the agent has a column of its own), and by the agent below another task.
    """
    parent = task.parent_id
    if parent is not None and task.task_id.startswith(parent + "."):
        return task.task_id[len(parent) + 1 :]
    if _is_stated(task):
        return task.task_id
    if task.run is not None:
        words = task.run.prompt.opening if task.run.prompt is not None and task.is_session else ""
        return task.run.title or words or task.run.agent or task.task_id
    name = basename(task.task_id) or task.task_id
    if parent is not None or task.agent is None:
        return name
    directory, separator, extra = task.task_id.partition("#")
    directory = dirname(directory) if basename(directory) == task.agent else directory
    return (basename(directory) or name) + separator + extra


def _is_stated(task: Task) -> bool:
    """Whether a document itself gives this id: then a slash in it separates nothing."""
    documents = (task.packet, task.result)
    return any(document is not None and document.task_id == task.task_id for document in documents)
