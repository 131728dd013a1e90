"""Events in, a tree of tasks out: no I/O and no clock, and the order of arrival never matters, for all goes by `seq`.

Two returns that disagree are no result. A decision stands above what the return says, until another return or attempt
comes or it expires. A turn begins an attempt if it came after a decision about the end of the one before, was handed a
packet or another number, or if its parent asked again after a failure: so the same bytes can be two attempts.
"""
