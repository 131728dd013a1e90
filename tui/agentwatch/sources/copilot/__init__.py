"""GitHub Copilot CLI, as 1.0 writes it: one file of events for a session and all its agents, to any depth.

An event is `{type, data, id, timestamp, agentId?}`; without an `agentId` it is the session's own. The tool `task` hands
work out. An agent ends by `subagent.completed` or `subagent.failed`, in the rounds after its first one with its turn.
"""
