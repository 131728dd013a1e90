"""Every handoff and return ever observed: it outlives rewrites, deletes and restarts.

Why it is so:

- A start is a replay: what was recorded comes first, with negative `seq`. Then the source is told the fingerprints of
  the files that were there, and reads only what has changed. A judgement is kept with a checksum of the contracts'
  code.
- Sessions are not copied: that would put private transcripts into a second place, and leave a newcomer's log empty.
  `story` makes of each run what it was when it began, when each round ended, and what it is now.
- `log --follow` has a tree of its own: the monitor applies slices in which a task may pass through several states, and
  the log says each of them.
"""
