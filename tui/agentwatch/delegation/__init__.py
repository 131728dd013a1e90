"""Builds a tree of tasks from events. It does no I/O and reads no clock. The `seq` of each event gives their order.

If two returns of an attempt contradict each other, the attempt has no result. A decision outranks the return until the
decision expires, or until another return or attempt comes. A later turn of a session begins a new attempt in 3 cases:
it follows a decision about the attempt before, its prompt has a packet, or the parent asked again after a failure.
"""
