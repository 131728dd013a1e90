"""Connects agents with agentwatch, by an MCP server and by hooks. `agentwatch init` sets up both."""
