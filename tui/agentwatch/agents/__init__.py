"""Serves agents: the MCP server, the hooks of agent programs, and `agentwatch init`, which sets both up."""
