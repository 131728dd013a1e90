"""Chains: a task that is only named, and has one task below it, shares the row of that one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentwatch.delegation.task import Task


def continued(tasks: Mapping[str, Task], task: Task) -> Task | None:
    """The task below one that is only named, where it has but this one below it and is in one row with it."""
    return tasks.get(task.children[0]) if task.shares_row else None


def end_of_chain(tasks: Mapping[str, Task], task_id: str) -> str:
    """The id of the task at the end of a chain, whose row it is; a task outside of chains is its own end."""
    task = tasks.get(task_id)
    while task is not None and (task := continued(tasks, task)) is not None:
        task_id = task.task_id
    return task_id


def chain_above(tasks: Mapping[str, Task], task: Task) -> tuple[str, ...]:
    """The ids of the tasks above one that are in its row, the outermost first."""
    chain: list[str] = []
    while task.parent_id is not None and continued(tasks, task := tasks[task.parent_id]) is not None:
        chain.append(task.task_id)
    return tuple(reversed(chain))


def chain_name(task: Task, chain: Sequence[Task]) -> str:
    """The name before the title in the row of a chain, the outermost first; "" where the title is enough. Of a type of
    agent, nobody would know which work it is."""
    if task.agent is None or task.title.partition("#")[0] != task.agent:
        return ""
    name = next((one.title for one in chain if one.title != one.agent), "")
    return "" if name == task.title else name
