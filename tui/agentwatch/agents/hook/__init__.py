"""`agentwatch hook`: answers one call of a hook of Claude Code.

The reasons for its design:

- The hook holds a failed child until the operator decides. Otherwise the child would pass as if it were approved.
- A decision must name exactly the return with which the child ended. Claude Code trims the last message, but not the
  transcript, so a decision may name either text. `state_of` judges a child, as in the tree.
- A request of the main session is held as long as the program shows its own prompt. The prompt for a child's request
  appears only after the hook has ended, so the hook holds such a request for seconds, and only if somebody watches.
- A request is identified by the process that holds it, because Claude Code gives it no id. If the transcript has the
  result of the call, the request was answered in the program.
- The hook never ends with exit code 2, by which Claude Code would block the agent.
- OpenCode and Kilo have a plugin (`opencode.js`) instead, which starts a process for each request. The plugin follows
  their events. Their list of open requests would fail as a whole because of one broken request.
"""
