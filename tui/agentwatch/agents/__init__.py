"""What agents use to hand off, return and wait: the MCP server, the hook, and `init`, which sets them up."""
