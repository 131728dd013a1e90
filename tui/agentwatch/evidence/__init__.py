"""Claims of returns against the disk, git and the log of commands.

- Only a false statement is contradicted. Missing citations and success criteria are unverifiable.
- If git fails or its history is incomplete, "written since the handoff" proves nothing: an old file may have been
  touched. Nor is a handoff as old as it says if its inode was changed later (`st_ctime`).
- A moved file is found beside its return; a file of the same name elsewhere does not count as moved.
- git never reads the repository's configuration, because agents can write it: it gets an empty repository of ours that
  borrows index and objects.
- A command is looked up in the log before its sentence is understood. A line that is not fully understood may have
  started and changed anything; a run that failed before files were put back says nothing about the files now.
"""
