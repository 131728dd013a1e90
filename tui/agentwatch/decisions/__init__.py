"""Decisions of the operator: recorded once, signed, delivered into the workspace, and read by the agents.

Why it is so:

- After an error the ledger is read again, and a failed sync is not tried again. The answer is then "recorded, but",
  "not recorded" or, rarely, "nobody can tell". To decide the same again is safe in all three.
- What agents write is a claim and is called one. "acted" comes only from the next attempt, or from a fitter's handoff
  that names the decision and the task.
- A replaced key signs nothing new, and what it signed stays valid.
- An amended handoff is the old packet with single keys changed, laid out anew. It loses its `session_id`, for the next
  attempt has its own. One that breaks its contract is corrected by the operator first.
"""
