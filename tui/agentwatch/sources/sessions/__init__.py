"""The agents' own session stores as sources. What a reader of ours is made of, and what it need not do itself:

`source`, `registry`     the thread that asks all readers, and the table of them
`reader`                 the protocol; what was given, what has changed of it; texts as messages, and again by digest
`transcripts`            a whole reader for programs with a transcript for each session and agent, and a description
                         beside an agent's; a program gives a `Kind`: where its files lie, what lines come to, the runs.
                         It is made of `projects` (which files), `group` (those of a session), `processes`
                         and `locks`
`doing`                  what one record says, for all programs, and what the agent does by it
`outliving`              what a screen shows of a run whose transcript is lost
`following`, `follower`  the transcript of a run, line by line and whole, and the thread that follows it
`acts`                   what an agent did by its tools, out of a transcript: commands with how they ended, files
`listing`, `tail`        directories, and files of lines: changed, torn, cut short, replaced, refused
`growing`                such a file with what its lines come to
`fields`, `runs`         what stands in records, and what is true of the runs of all programs
"""
