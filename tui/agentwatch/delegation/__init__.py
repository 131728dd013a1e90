"""Events in, a tree of tasks out. Pure: no I/O and no clock; time arrives as a `Tick`.

- The order of arrival never matters: whatever depends on order goes by `seq`.
- Attempts outlive their files; a moved file takes its history along.
- Two returns that disagree are no result. A decision stands above what the return says, until another return or attempt
  comes or it expires. Only an answer to a blocked child, and what resumes a PARTIAL that recommends it, is no retry.
- A turn begins an attempt if it came after a decision about the end of the one before, if it was handed a packet or
  another number, or if its parent asked again after a failure. So the same bytes can be two attempts.
- When a called fitter has ended, the task asks again, with exactly one retry if the line is restored.
"""
