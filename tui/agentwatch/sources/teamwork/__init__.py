"""Teamwork: each agent keeps a directory `.agents/<role>/` of Markdown files: its task, its progress, its handoff."""

from agentwatch.sources.teamwork.teamwork_reader import TeamworkReader

__all__ = ["TeamworkReader"]
