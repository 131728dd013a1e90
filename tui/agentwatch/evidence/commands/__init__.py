"""What returns say of commands and tests, against the log of what was done. Nothing of it is ever run here.

`statements` what a sentence says  `line`, `programs`, `tables` what a command line starts, and whose its exit code is
`outcomes`   what an output counts `log`      what was done, out of transcripts
`hits`, `holding` the verdict      `unsaid`   what was done and is not spoken of
`proof`      all of that for one attempt

Why it is so:

- A verdict needs a program that is known by its name to be the test or check, in a line that is understood whole: so a
  log that `cat` prints, or a line that `echo` writes, is no run.
- An exit code shows something only where the check is the sole command of the call, or follows a plain `cd`; of all
  other lines only failures that the output counts do. A test that printed no result is not verified.
- What any other agent of the workspace may have changed between the run and the return makes it outdated.
- That something was never run is said only if nothing that was run could have started it: no script, no tool that is
  not known. Reading a sentence is the weakest link: one that says "should", "before" or "on CI" says nothing.
- A line that is not understood may start anything but what is known to start nothing. A known list of what tests would
  never be whole.
- A run that failed on another branch, or before files were put back, says nothing of the files that are there.
- A transcript is read once more than its source does, and only of an attempt whose return follows a contract: keeping
  every call of every session would cost more than reading again the few that something is said about.
"""
