"""`agentwatch hook`: answers one call of a hook of Claude Code.

The reasons for its design:

- The hook holds a failed child until the operator decides: silence would let it through as if it had been approved.
- A decision must name exactly the return that the child ended with. Claude Code trims the last message but not the
  transcript, so both spellings count. The tree's own `state_of` judges a child, so no completed one is sent back.
- A request of the main session is held as long as the program shows its prompt. The prompt for a child's request
  appears only after the hook has ended, so such a request is held for seconds, and not at all if nobody watches.
- A request is identified by the process that holds it: the program gives no id, and equal requests may follow each
  other. The result of the call in the transcript shows that the request was answered in the program.
- The hook never ends with exit code 2: Claude Code would block the agent, with our message as the reason.
- OpenCode and Kilo have a plugin (`opencode.js`) instead, which starts a process for each request. It follows their
  events, because their list of open requests fails as a whole if one request cannot be written as JSON.
"""
