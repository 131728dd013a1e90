"""The agents' own session stores as sources. A reader of ours has these parts, and need not do the rest itself:

`source`, `registry`  the thread that asks all readers; the table of the readers, and where they found somebody alive
`reader`              the protocol (`SessionReader`), texts as messages, and what each of ours begins with
`store`               the loop for programs that keep files of lines (`FilesReader`): find the files, read on, fold.
                      A program gives its `layout`, a fold for a file (`begin`, with `add(record)`), `runs_of(session)`
                      and `entries_of(run)`; whatever else differs is a method with a default that it overrides
`runs`                an account of one agent (`Account`), which a fold extends, and the run made of it (`run_of`)
`entries`             `Entry`, what a record says; the acts that these come to, commands with how they ended, and files;
                      the transcript of a run, its steps, and the thread that follows it on the screen
`processes`           which programs run, by the files that they keep of that
`fields`              files of lines: torn, cut short, replaced, refused; and what stands in their records
"""
