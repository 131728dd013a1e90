"""Every handoff and return ever observed: it outlives rewrites, deletes and restarts."""
