"""What agents are given so that they hand off, return and wait the agentwatch way: MCP server, hook, set-up."""
