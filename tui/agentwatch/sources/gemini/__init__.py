"""Gemini CLI, as 0.61 writes it: a chat for each session, and beside it a directory with the chats of its agents.

A line is a message `{id, timestamp, type, content, toolCalls?}`, or changes what was written before: a message with the
same id takes its place, once its calls are over; `$set` sets keys of the whole, `$rewindTo` takes messages back.
"""
