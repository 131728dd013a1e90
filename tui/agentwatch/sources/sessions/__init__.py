"""The sources that read the session stores of agent programs. A reader reads one store. The modules are:

`source`      the thread that asks all readers for changes
`registry`    the table of all readers, and a search for the working directories of recent sessions
`reader`      the protocol of a reader (`SessionReader`), and the base class of our readers
`store`       the base class for programs that keep files of JSON lines (`FilesReader`). A subclass has the pattern
              `files` and a `fold`: a class that takes in the lines of a file. It overrides `runs_of` and other methods.
`runs`        the state of one agent (`Account`, the base class of most folds), and the run made from it (`run_of`)
`entries`     the parts of a line (`Entry`), the acts of an agent, and the transcript of a run
`processes`   the state of the running programs, from the files that they write about themselves
`fields`      the lines of a growing file, and typed access to JSON fields
"""
