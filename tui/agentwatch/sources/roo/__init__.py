"""Roo Code, and the extension that Kilo Code was made of it: the tasks in the storage of VS Code and its relatives.

What is assumed is taken from its public source (2025-10 to 2026-09), not from running it:
`tasks/<id>/history_item.json` is {id, parentTaskId?, ts, task, tokensIn, tokensOut, workspace?, mode?, status?}, with
status one of active, delegated, completed, interrupted, aborted; `ui_messages.json` beside it is a list of
{ts, type: ask | say, ask?, say?, text?, partial?}, times in milliseconds. Both are replaced as a whole.
"""

from agentwatch.sources.roo.reader import RooReader

__all__ = ["RooReader"]
