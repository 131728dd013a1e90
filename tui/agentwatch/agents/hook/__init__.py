"""`agentwatch hook`: one call of a hook of Claude Code, from its payload to its answer.

Why it is so:

- A child that nobody has decided about is held: silence would let a failed child through as if it had been approved.
- It asks about exactly one return. The program trims a last message and its transcript does not, so both spellings are
  tried. It judges by the tree's own function (`state_of`), so what the tree calls completed is never sent back.
- A request of the session itself is held as long as its prompt stands beside it. The prompt of a child appears only
  when the hook has ended, so that is held for seconds, and for none where nobody watches.
- A request is known by the process that holds it: the program gives it no id, and equal ones may follow each other.
  The call in the transcript tells that it was answered in the program.
- It never ends with exit code 2: Claude Code would block the agent, with our complaint as the reason.
- OpenCode and Kilo have a plugin (`opencode.js`) instead, which starts a process for each request. It goes by their
  events: their list of what is open fails as a whole while one request in it cannot be written as JSON.
"""
