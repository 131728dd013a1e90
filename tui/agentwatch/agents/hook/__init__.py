"""`agentwatch hook`: answers one call of a hook of Claude Code.

The reasons for its design:

- The hook holds a failed child until the operator decides. Otherwise the child would pass as if it were approved.
- A decision must name exactly the return with which the child ended. Claude Code trims the last message, but not the
  transcript, so a decision may name either text. The hook judges a child with `state_of`, like the tree.
- For a request of the main session, the prompt of the program is open while the hook holds the request, so the hook may
  wait long. For a child's request, the prompt opens only after the hook has ended. So the hook waits only for some
  seconds, and only if somebody watches.
- A request is identified by the process that holds it, because Claude Code gives requests no id. If the transcript has
  the result of the call, the request was answered in the program.
- The hook never ends with exit code 2, because Claude Code would then block the agent.
- OpenCode and Kilo have a plugin (`opencode.js`) instead, which starts a process for each request. The plugin learns of
  requests from events, and not from the program's list: one broken request would make the whole list fail.
"""
