"""Where observations come from: files, and the sessions of agent programs.

Why it is so:

- One thread reads the workspace: it scans, watches, reads and parses. The event loop only applies observations, in
  slices of 6 ms, so a key never waits for a disk.
- A reader gives the whole state of a run whenever it has changed. So order, chunks and restarts cannot matter.
- Readers may come from other packages. One that breaks is asked no more, says so, and hides nobody else.
- Clones and checkouts give every file the time of now. So the first look takes the time in a return, else that of the
  commit with this content, if it is earlier. Later, nothing in a file can make it older than the last look.
- A replay steps back by telling again what the files and runs held before. That costs those, not the whole recording.
"""
