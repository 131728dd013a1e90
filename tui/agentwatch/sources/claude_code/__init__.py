"""What Claude Code keeps of its sessions, read as runs: see `reader`."""
