"""Stores the old runs of a workspace, acknowledgements and recordings, and derives the log of state changes."""
