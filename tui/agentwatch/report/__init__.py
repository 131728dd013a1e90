"""`agentwatch report`: a session's account as Markdown, HTML or JSON, for a pull request or a post-mortem."""
