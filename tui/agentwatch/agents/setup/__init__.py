"""`agentwatch init`: the few lines that make an agent program hand off, return and wait this way."""
