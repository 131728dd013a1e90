"""The agents' own session stores as sources. What a reader of ours is made of, and what it need not do itself:

`source`, `registry`     the thread that asks all readers, and the table of them
`reader`, `store`        the protocol; what was given, what has changed of it, how many were found
`transcripts`            a whole reader for programs with a transcript for each session and agent, and a description
                         beside an agent's; a program gives a `Kind`: where its files lie, what lines come to, the runs.
                         It is made of `projects` (which files), `group` (those of a session), `processes`, `lineage`
`listing`, `growing`     directories, and files of lines (`tail`): changed, torn, cut short, replaced, refused
`texts`                  texts as messages, and the texts again by digest
`fields`, `order`, `rounds`, `notification`   what stands in records
"""
