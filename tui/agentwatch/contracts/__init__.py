"""Text to handoff or return, with findings; nothing here reads a file or the clock, and `rules.txt` loads as code does.

`shapes` is what the whole program passes around and imports nothing heavy; `reading`, the way in, imports pydantic.
Of several returns in one answer the last counts, an open one before those that are fenced or JSON. What Markdown allows
breaks no return; a fence is read only if its section has nothing else. A status that nobody knows is never green.
What finds lines in JSON, and closes what breaks off, runs only for a finding.
"""
