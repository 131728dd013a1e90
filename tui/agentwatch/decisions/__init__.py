"""Decisions of the operator: recorded once, signed, delivered into the workspace, and read by the agents.

Reasons:

- After a disk error, agentwatch reads the ledger again, and does not repeat a failed sync. The operator then reads
  "recorded, but", "not recorded" or, rarely, "nobody can tell". In all three cases it is safe to decide the same again.
- A receipt that an agent writes is only a claim. The next attempt proves that an agent acted on the decision. A
  fitter's handoff that names the decision and the task proves it, too.
- A replaced key signs nothing new. The signatures that it made before stay valid.
- An amended handoff is the old packet (the handoff's JSON) with a few keys changed. It has no `session_id`, because the
  next attempt has its own session. If it breaks its contract, the operator must correct it first.
"""
