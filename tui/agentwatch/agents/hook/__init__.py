"""`agentwatch hook`: one call of a hook of Claude Code, from its payload to its answer."""
