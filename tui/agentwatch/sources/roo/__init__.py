"""Roo Code, the extensions that were made of it, and their command lines: tasks of a few files each.

Taken from public sources and files (Roo Code 2025-03 to 2026-10, Kilo Code 4 and 5, Zoo Code), not from running them:

`tasks/<id>/history_item.json`   {id, parentTaskId?, ts, task, tokensIn, tokensOut, workspace?, mode?, status?}, with
                                 status one of active, delegated, completed, interrupted, aborted. The older ones and
                                 Kilo Code have none: see `older_item`
`ui_messages.json` beside it     a list of {ts, type: ask | say, ask?, say?, text?, partial?}. The first is the prompt;
                                 a `newTask` is handed on, a `completion_result` handed back
`api_conversation_history.json`  what the model was sent, of which only the beginning is read, and that of older tasks

Times are in milliseconds. All are replaced as a whole.
"""
