"""Text to handoff or return, with findings. Pure: nothing here reads a file or the clock.

`shapes` is what the whole program passes around and imports nothing heavy; `reading` is the way in and imports
pydantic, so whoever needs it imports `agentwatch.contracts.reading` where it is used.
"""
