"""Text to handoff or return, with findings; nothing here reads a file or the clock, and `rules.txt` loads as code does.

`shapes` is what the whole program passes around and imports nothing heavy. `reading` is the way in and imports
pydantic, so import it where you use it.

Why it is so:

- Of several returns in one answer the last one counts: templates and drafts stand before the answer. What stands
  inside a return is quoted. A message does not say whether it asks or answers, so it carries its return and its first
  packet.
- What Markdown allows breaks no return and hides nothing of one. A fence or a quote is somebody else's words; a fence
  is read only if its section has nothing else. A state that is given twice in two ways is an error.
- A status that nobody knows is never green. The list of stage words allows: what else ends in -ed has no end.
- JSON is parsed by the standard library. What finds lines, and closes what breaks off, runs only for a finding.
"""
