"""Decisions of the operator: recorded once, signed, delivered into the workspace, and read by the agents.

Why it is so:

- A signed file is DSSE to others, and one regular expression to us: an agent's text reaches no JSON parser before its
  signature was checked, and no second spelling of a good file is accepted.
- Nothing is appended to a damaged ledger, because nobody could verify what follows. What is good before it stays valid.
- After an error the ledger is read again, and a failed sync is not tried again. The answer is then "recorded, but",
  "not recorded" or, rarely, "nobody can tell". To decide the same again is safe in all three.
- What agents write is a claim and is called one. "acted" comes only from the next attempt, or from a fitter's handoff
  that names the decision and the task.
- A replaced key signs nothing new, and what it signed stays valid.
- The mirror counts only where the signing key is out of sight, which is in a sandbox.
- Agents in a sandbox claim in the workspace, hooks outside also in the state directory. Who can claim in both must win
  both.
- An amended handoff is the old packet with single keys changed, laid out anew. It loses its `session_id`, for the next
  attempt has its own. One that breaks its contract is corrected by the operator first.
"""
