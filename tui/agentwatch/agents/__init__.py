"""The MCP server and the hook, by which agents hand off, return and wait, and `init`, which sets them up."""
