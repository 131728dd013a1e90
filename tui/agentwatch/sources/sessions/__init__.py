"""The agents' own session stores as sources. What a reader of ours is made of, and what it need not do itself:

`source`, `registry`     the thread that asks all readers, one lock for each source, and the table of the readers
`reader`                 the protocol (`SessionReader`), and what each of ours begins with (`StoreReader`): what has
                         changed of the runs, texts as messages, and again by digest
`store`                  the whole loop for programs that keep files of lines (`FilesReader`): find the files of the
                         workspace, read what is new, fold it, tell which runs have changed. A program gives its
                         `layout`, a fold for a file (`begin`: it has `add(record, offset)`) and `runs_of(session)`;
                         whatever else differs is a method with a default that it overrides
`runs`, `doing`          an account of one agent (`Account`: rounds, answer, todos, tokens, what it does), which a fold
                         extends, and the run made of it (`run_of`, `settle`); `Entry`: what a record says
`processes`, `where`     which programs run, by the files that they keep of that
`tail`, `fields`         files of lines: torn, cut short, replaced, refused; and what stands in their records
`following`, `steps`     the transcript of a run, line by line and whole: `LinesTranscript` for files of lines,
                         `WholeTranscript` for what is read as a whole; `follower` is the thread that follows one
`acts`                   what an agent did by its tools, out of a transcript: commands with how they ended, files
`outliving`, `selection` what a screen shows of a run whose transcript is lost; which sessions are shown at all
`guarded`, `checked`     readers of somebody else's packages, and their runs
`alive`                  in which directories sessions were alive of late, for `--all`
"""
