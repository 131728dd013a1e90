"""Events in, a tree of tasks out: no I/O and no clock; `seq` orders the events, whatever the order of arrival.

Two returns that contradict each other count as no result. A decision outranks the return until another return or
attempt comes or it expires. A turn begins a new attempt if it came after a decision about the end of the one before,
was handed a packet or another number, or if its parent asked again after a failure: so the same bytes can be two
attempts.
"""
