"""Decisions of the operator: recorded once, signed, delivered into the workspace, and read by the agents.

Reasons:

- After a disk error the ledger is read again, and a failed sync is not repeated. The operator then reads "recorded,
  but", "not recorded" or, rarely, "nobody can tell". Deciding the same again is safe in all three cases.
- Anything that agents write is only a claim. The next attempt proves that a decision was acted on. A fitter's handoff
  that names the decision and the task proves it, too.
- A replaced key signs nothing new, and its old signatures stay valid.
- An amended handoff is the old packet with a few keys changed. It loses its `session_id`, because the next attempt has
  its own. If the amended handoff breaks its contract, the operator corrects it first.
"""
