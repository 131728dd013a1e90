"""The agents' own session stores as sources; our readers use these parts:

`source`, `registry`  the thread that asks all readers; the table of the readers, and the directories of live sessions
`reader`              the protocol (`SessionReader`), texts as messages, and the base of our readers
`store`               the loop for programs that keep files of lines (`FilesReader`): find the files, read on, fold.
                      A program gives its `files` pattern, a fold for a file (`begin`, with `add(record)`),
                      `runs_of(session)` and `entries_of(run)`; other differences are methods with defaults to override
`runs`                an account of one agent (`Account`), which a fold extends, and the run made of it (`run_of`)
`entries`             `Entry`, a part of a record; the acts of an agent: commands with their ends, and files;
                      the transcript of a run, its steps, and the thread that follows it on the screen
`processes`           the running programs, by the files in which they register
`fields`              files of lines: torn, cut short, replaced, refused; and typed access to their records
"""
