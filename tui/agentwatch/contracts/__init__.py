"""Turns a text into a handoff or a return, with findings. No I/O and no clock.

The first frame of the screen need not load pydantic for this. If an answer holds several returns, the last one counts.
An unfenced Markdown return counts before returns in fences and in JSON. An unknown status is never shown as a success.
"""
