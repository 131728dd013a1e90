"""What OpenCode and Kilo Code keep of their sessions, read as runs: see `opencode_reader`."""
