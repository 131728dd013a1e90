"""The agents' own session stores as sources. What a reader of ours is made of, and what it need not do itself:

`source`, `registry`  the thread that asks all readers, and the table of the readers
`reader`              the protocol (`SessionReader`), texts as messages, and what each of ours begins with
`store`               the loop for programs that keep files of lines (`FilesReader`): find the files, read on, fold.
                      A program gives its `layout`, a fold for a file (`begin`: it has `add(record, offset)`) and
                      `runs_of(session)`; whatever else differs is a method with a default that it overrides
`runs`, `doing`       an account of one agent (`Account`), which a fold extends, and the run made of it (`run_of`,
                      `settle`); `Entry`: what a record says
`processes`           which programs run, by the files that they keep of that
`tail`, `fields`      files of lines: torn, cut short, replaced, refused; and what stands in their records
`following`           the transcript of a run, its steps, and the thread that follows it on the screen
`acts`                what an agent did by its tools, out of a transcript: commands with how they ended, files
`alive`               in which directories sessions were alive of late, for `--all`
`checked`             runs of readers of somebody else's packages, and of recordings
"""
