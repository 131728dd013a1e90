"""The sources that read the agents' own session stores. The modules are:

`source`      the thread that asks all readers for changes
`registry`    the table of the readers, and the directories of live sessions
`reader`      the protocol of a reader (`SessionReader`), and the base class of our readers
`store`       the base class for programs that keep files of lines (`FilesReader`). A program gives the pattern `files`,
              a fold for each file (`make_fold`), `runs_of` and `entries_of`, and may override other methods.
`runs`        the account of one agent (`Account`), which a fold extends, and the run made of it (`run_of`)
`entries`     the parts of a record (`Entry`), the acts of an agent, and the transcript of a run
`processes`   the running programs, by the files that they write about themselves
`fields`      the lines of a growing file, and typed access to the fields of its records
"""
