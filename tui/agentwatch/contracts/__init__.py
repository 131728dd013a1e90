"""Text to handoff or return, with findings; nothing here reads a file or the clock, and `rules.txt` loads as code does.

`shapes` is what the whole program passes around and imports nothing heavy; `reading`, the way in, imports pydantic.
Of several returns in one answer the last counts: templates and drafts stand before it, and inside of it is quoted. What
Markdown allows breaks no return; a fence is read only if its section has nothing else. A status that nobody knows is
never green. What finds lines in JSON, and closes what breaks off, runs only for a finding.
"""
