"""Shows workspaces of other machines (hosts). On each host a relay watches them, and sends their events."""
