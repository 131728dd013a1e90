"""Requests of programs, offered where the operator sees them, and answered by whoever holds them.

Why it is so:

- An answer is for one process that waits, and for one input: whoever holds a request compares the signed answer with
  the input in its own memory. The file is only what screens show.
- A lock says that somebody waits, for the system frees it with the process. The lock is taken before the file has its
  name, so nobody ever sees an offer that nobody holds.
- Several may hold one request, as two monitors on one socket do: all of them lock the same file, and one claims.
- The claim comes before the program gets the answer: what is killed in between loses the answer, and the program's own
  prompt stands. The other way round it could be given twice.
- Nothing waits for the disk: what is offered or claimed says nothing after a power failure, for who waited is gone.
- A decision from before the request was made does not count: programs give ids again after a restart.
- Nothing lies in the workspace, and nothing is offered where the state directory or the keys lie in it: its settings
  can set the environment of what a program starts.
"""
