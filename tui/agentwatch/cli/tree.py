"""The command that prints the delegation tree."""

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from agentwatch.cli.command import PLACES, SESSION, argument, command, flag
from agentwatch.cli.shared import print_workspaces
from agentwatch.console import MUTED, NEEDS, STRONG, Part, print_line
from agentwatch.delegation.task import Shown, Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import print_problems
from agentwatch.text import clean, clean_summary, print_error, quote_text
from agentwatch.view.rows import Group, Matches, Order, chain_name, find_matches, parse
from agentwatch.view.words import ask_line, count_waits, delay_of, doing_words, look_of, plural, question_at, short_span

_MOST_LEVELS = 40  # rows below this level are not indented further


@command(
    PLACES,
    flag("--json", "print the documented JSON (schema_version 1)"),
    flag("--fail", "exit with 1 if a task needs you, or something cannot be read"),
    argument(
        "--where", "QUERY", "only the tasks that match, with those above them: 'state:failed since:1h'", default=""
    ),
    SESSION,
    exit_codes="exit codes: 0 printed, 1 nothing matches, or, with --fail, a task needs you or something could not be"
    " read, 2 wrong usage, 3 a host could not be reached",
)
def tree(options: Namespace) -> int:
    """Print the delegation tree of a workspace once. Each of several workspaces is printed below its path."""
    counts: list[int] = []
    code = print_workspaces(options, partial(_print_tree, counts))
    if any(counts) or not options.where:
        return code
    print_error(f"agentwatch: nothing matches {quote_text(options.where, 200)}")
    return max(code, ExitCode.NOT)


def _print_tree(counts: list[int], monitor: Monitor, options: Namespace, add_document: Callable[[Any], None]) -> int:
    """Print the tasks of a monitor. With a query, print only matching tasks and the tasks above a match. Append the
    number of matches to `counts`. With `--fail`, return 1 if a task needs the operator or reading had problems."""
    tree, query = monitor.tree, parse(options.where)
    if query.fault:
        raise UsageError(f"--where: {query.fault}\ntry: agentwatch help find")
    found = find_matches(tree, query, tree.now) if query else None
    rows = found and found.rows
    counts.append(len(found.matches) if found else 0)
    if options.json:
        from agentwatch.view.document import tree_document  # pydantic takes a while to load

        add_document(tree_document(tree, monitor.directory, monitor.problems, found, dict(monitor.settings.prices)))
    else:
        order = Order(tree)
        order.apply(tree.tasks, tree.now)
        for row in order.rows(shown=found and found.shown):
            if isinstance(row.row_id, Group):
                print_line((row.row_id.name, STRONG), (f"  {order.tally(row.row_id, rows).titles(tree.now)[0]}", MUTED))
            else:
                task = tree.tasks[row.row_id]
                print_line(*_row_parts(task, row.depth, chain_name(tree.tasks, task), tree.tasks, tree.now), hang=4)
        print_line(" ".join(filter(None, _closing_sentences(monitor, found))), hang=0)
    print_problems(monitor.problems)
    asks = any(one.needs_operator for one in found.matches.values()) if found else tree.totals.needs_operator
    return 1 if options.fail and (asks or monitor.problems) else 0


def _row_parts(task: Task, depth: int, chain: str, tasks: Mapping[str, Task], now: float) -> Iterator[Part | str]:
    """Yield the parts of a task's row, with the same words as on the screen."""
    face, since = look_of(task), task.since
    name = clean_summary(f"{chain} · {task.title}" if chain else task.title, 80)
    yield "  " * min(depth, _MOST_LEVELS)
    yield face.glyph, face.color
    yield f" {name}  ", STRONG if task.needs_operator else MUTED if task.past or task.acknowledged else ""
    yield face.word, face.color
    yield "" if since is None else f" {short_span(now - since)}", MUTED
    yield ", accepted" if task.is_accepted else ""
    yield f"  attempt {task.attempt}" if task.attempt > 1 else ""
    yield "  {}/{}".format(*task.progress) if task.progress and task.state.is_open else ""
    yield f"  [{clean(task.agent, 40)}]" if task.agent and task.agent != task.title else "", MUTED
    if task.ask:
        yield "  NEEDS YOU", NEEDS
        yield f": {ask_line(task, question_at(task, now), 120)}"
    elif words := _activity_words(task, tasks, now):
        yield f"  {words}", MUTED


def _activity_words(task: Task, tasks: Mapping[str, Task], now: float) -> str:
    """Return what a task does or waits for. For a silent task, return its last activity."""
    words = clean(doing_words(task.last_doing), 200) if task.last_doing else ""
    if task.shown in (Shown.SILENT, Shown.GONE):
        return f"last: {words}" if words else clean(task.why, 200)
    if task.handoff_fault:
        return f"its handoff breaks the contract: {clean(task.handoff_fault, 200)}"
    if held := delay_of(task, tasks, now):
        return held
    waiting = count_waits(task, tasks)
    return f"waits for {waiting:,}" if waiting else words if task.state.is_open else ""


def _closing_sentences(monitor: Monitor, found: Matches | None) -> Iterator[str]:
    if monitor.tree.lost_since is not None:
        yield f"{clean(monitor.host)} was not read."
    from agentwatch.report.account import verdict_of  # not needed for JSON

    yield verdict_of(monitor.tree, len(monitor.problems), found=found and found.rows.values())
    notices = {placed.path: "verify" if placed.rule.startswith("DEC") else "check" for placed in monitor.tree.notices}
    for name, files in sorted(Counter(notices.values()).items()):
        yield f"{plural(files, 'other file')} with problems: `agentwatch {name}` tells them."
