"""Folds events to a tree of tasks. No I/O and no clock. `seq` orders the events, even if they arrive in another order.

Two returns that contradict each other count as no result. A decision outranks the return until another return or
attempt comes, or until the decision expires. A later turn of a session begins a new attempt in one of these cases: it
follows a decision about the attempt before, its prompt has a packet, or its parent asked again after a failure.
"""
