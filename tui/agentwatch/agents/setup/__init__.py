"""`agentwatch init`: the few lines that make an agent program hand off, return and wait this way.

Why it is so:

- It edits text, not values: to parse and dump would lose comments, duplicates and the user's layout.
- It writes an interpreter with `-I -S`, our file, and where the packages lie. Otherwise the current directory, a
  PYTHON* variable or a `.pth` file could run somebody else's code. The words need no quotes, because agents' rules
  hold them, too.
"""
