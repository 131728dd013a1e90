"""The source of a workspace's files: the handoffs and returns that agents write."""
