"""Text to handoff or return, with findings: no I/O, no clock, and the first frame need not load pydantic for it.

If an answer holds several returns, the last one counts, and an unfenced Markdown one counts before fenced and JSON
ones. An unknown status is never shown as a success.
"""
