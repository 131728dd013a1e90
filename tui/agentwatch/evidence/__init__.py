"""Claims of returns against the disk, git and the log of commands.

Why it is so:

- Only a false statement contradicts. Evidence that is not cited, and success criteria, are unverifiable: shown, never
  green, and no reason to call anybody.
- What cannot be asked is unverifiable. If git fails or its history breaks off, "written since the handoff" proves
  nothing: an old file may have been touched. Nor is a handoff as old as it says if its inode was changed later
  (`st_ctime`).
- A moved file is found beside its return: where that lay before, or in a directory whose path is the old one with names
  put in or left out. A file of the same name elsewhere is no move; what git moved by itself is unverifiable.
- git never reads the repository's configuration, because agents can write it. It gets an empty repository of ours
  that borrows index and objects, so no filter, hook, fsmonitor or textconv can run.
- A command is looked for in the log before its sentence is understood. Only the sole command of a call, or one that
  follows a plain `cd`, is weighed; a line that is not surely understood may have started and changed anything.
- A run that failed on another branch, or before files were put back, says nothing of the files that are there.
"""
