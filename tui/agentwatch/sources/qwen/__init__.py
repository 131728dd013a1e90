"""Qwen Code, as 0.24 writes it: chats of sessions and of agents, in a directory for each working directory.

A record is `{uuid, timestamp, type, subtype?, message: {role, parts}}`. The tool `agent` hands work out. How an agent
stands is in its description at once, while its parent hears of it when all agents of its message have ended.
"""
