"""Decisions of the operator: recorded once, signed, delivered into the workspace, and read by the agents.

Reasons:

- After an error the ledger is read again, and a failed sync is not repeated. The answer is then "recorded, but",
  "not recorded" or, rarely, "nobody can tell". Deciding the same again is safe in all three cases.
- Anything that agents write is a claim and is called so. Only the next attempt proves "acted", or a fitter's handoff
  that names the decision and the task.
- A replaced key signs nothing new, and its old signatures stay valid.
- An amended handoff is the old packet with single keys changed, laid out anew. It loses its `session_id`, because the
  next attempt has its own. If it breaks its contract, the operator corrects it first.
"""
