"""The commands without a screen, one module each. What a command takes is in `cli`.

Why it is so:

- `wait` takes no decision about another return than the one that is there, nor about an earlier attempt: an
  orchestrator that loops would retry for ever. In a sandbox the history may be hidden, so the attempt number is a
  lower bound.
- The doctor believes its probe as far as it can see the effects from outside: a file that was written must lie here, a
  key that was read must have the checksum of ours, a socket must have the inode of ours. A container has other files
  under the same names. A socket that is seen counts as reached.
"""
