"""Checks the claims of returns against the disk, git and the log of commands.

- A claim is contradicted only if it is false. A missing citation or success criterion is only unverifiable.
- Without git's full history, a file's time proves nothing: somebody may have touched an old file. The time of a
  handoff's file proves nothing if its inode was changed later (`st_ctime`).
- If a return was moved, the claimed files that were moved along with it are found. agentwatch does not look for
  files of the same name in other places.
- Agents can write the repository's configuration, so git must not read it. git gets an empty repository of agentwatch,
  with only the index and the objects of the real repository.
- To understand a sentence, agentwatch first looks for its commands in the log. A shell line that is not fully
  understood may have started any program and changed any file.
"""
