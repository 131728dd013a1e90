"""Checks the claims of returns against the disk, git and the log of commands.

- Only a false statement is contradicted. Missing citations and success criteria are unverifiable.
- If git fails or its history is incomplete, a file's time proves nothing: an old file may only have been touched. A
  handoff's own time proves nothing if its inode was changed later (`st_ctime`).
- If a return was moved, files are found that moved with it. A file of the same name elsewhere does not count as moved.
- Agents can write the repository's configuration, so git never reads it. git gets an empty repository of agentwatch and
  borrows only the index and the objects.
- The log is searched for the commands of a sentence before the sentence is understood. A shell line that is not fully
  understood may have started and changed anything.
"""
