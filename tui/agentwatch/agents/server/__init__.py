"""The MCP server: the tools of `agentwatch mcp`. Only `server` imports the SDK."""
