"""Roo Code, the extensions that were made of it, and their command lines: tasks of a few files each.

Taken from public sources and files (Roo Code 2025-03 to 2026-10, Zoo Code), not from running them:

`tasks/<id>/history_item.json`   {id, parentTaskId?, ts, task, tokensIn, tokensOut, workspace?, mode?, status?}, with
                                 status one of active, delegated, completed, interrupted, aborted. Tasks without one,
                                 as older versions leave them, are not read
`ui_messages.json` beside it     a list of {ts, type: ask | say, ask?, say?, text?, partial?}. The first is the prompt;
                                 a `newTask` is handed on, a `completion_result` handed back

Times are in milliseconds. All are replaced as a whole.
"""
