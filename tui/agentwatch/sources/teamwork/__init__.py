"""Teamwork: each agent keeps a directory `.agents/<role>/` of Markdown files: its task, its progress, its handoff."""
