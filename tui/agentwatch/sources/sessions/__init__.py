"""The agents' own session stores as sources."""
