"""Events in, a tree of tasks out. Pure: no I/O and no clock; time arrives as a `Tick`.

`Tree.apply` keeps what events say (`files`, `run.Runs`, `request.Requests`), folds each task that changes anew from all
that is known of it (`attempts`, `states`, `retry`, `asks`), links those that moved (`links`), and works out from
the bottom up what follows from others and from the time. Sums and the queue are made when they are asked for.

- The order of arrival never matters: whatever depends on order goes by `seq`.
- Attempts outlive their files; a moved file takes its history along.
- Words without a contract are no fault, and silence asks nothing. A process that is known to be gone does: the topmost
  of those that it ran, once. What asked while the workspace was watched asks until it is decided.
- Two returns that disagree are no result. A decision stands above what the return says, until another return or attempt
  comes or it expires. Only an answer to a blocked child, and what resumes a PARTIAL that recommends it, is no retry.
- A turn begins an attempt if it came after a decision about the end of the one before, if it was handed a packet or
  another number, or if its parent asked again after a failure. So the same bytes can be two attempts.
- When a called fitter has ended, the task asks again, with exactly one retry if the line is restored. A success with a
  false claim restores nothing, unless the operator accepts it. What an aborted child says late undoes no abort.
- A missing artifact breaks the contract, but only evidence can tell: the task stays completed, and is contradicted.
"""
