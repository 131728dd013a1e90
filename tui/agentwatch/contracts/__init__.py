"""Text to handoff or return, with findings: only `reading` imports pydantic, and nothing reads a file or the clock.

Of several returns in one answer the last counts, an open one before those that are fenced or JSON. A status that nobody
knows is never green.
"""
