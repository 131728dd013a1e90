"""Claims of returns against the disk, git and the log of commands.

- Only a false statement contradicts. Evidence that is not cited, and success criteria, are unverifiable.
- Where git fails or its history breaks off, "written since the handoff" proves nothing: an old file may have been
  touched. Nor is a handoff as old as it says if its inode was changed later (`st_ctime`).
- A moved file is found beside its return; a file of the same name elsewhere is no move.
- git never reads the repository's configuration, because agents can write it: it gets an empty repository of ours that
  borrows index and objects.
- A command is looked for in the log before its sentence is understood. A line that is not surely understood may have
  started and changed anything; a run that failed before files were put back says nothing of those that are there.
"""
