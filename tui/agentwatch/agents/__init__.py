"""Agents hand off, return and wait the agentwatch way by these: MCP server, hook, set-up."""
