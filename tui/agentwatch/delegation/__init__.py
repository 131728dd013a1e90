"""Events in, a tree of tasks out. Pure: no I/O and no clock; time arrives as a `Tick`.

`tree.Tree.apply` takes a batch of events:

1. It keeps what they say: `files` the versions of files, and to which task each belongs (`identity`); `run.Runs` and
   `request.Requests` sessions and what they ask; the tree itself decisions and checks. Each says which tasks change.
2. Each of these is folded anew from all that is known of it: `attempts` of its versions, runs and decisions; how it
   stands and why (`states`), what the policy leaves it (`retry`), what it asks (`asks`). A fold may change others: an
   abort ends what is below, a fitter restores its station.
3. Where tasks have come or gone, or say something else of their place, all are linked anew (`links`).
4. From the bottom up, what follows from others and from the time is worked out for the tasks that were folded or moved
   and, as far as that makes a difference, for those above: sums, state, stale, alarms, title, findings, ask. Then
   totals, the queue and what is new.

Why it is so:

- The order of arrival never matters. Whatever depends on order goes by `seq`, which a source gives to each
  observation. A property test plays random histories in random interleavings.
- The cost of an observation does not grow with the tree. A task is made again from its own versions, and its parent is
  asked for again only when an id or a directory comes or goes that could change the answer.
- Elements of a `delegation_path` have no ids, and every session has an `orchestrator`. So an element is a task of its
  own task directory. A directory with several tasks is a collection and encloses none of them.
- Attempts outlive their files: a deleted file leaves its task, and a moved one takes its history along. The demo and
  replays use a tree that forgets.
- Words without a contract are no fault, and a message that cannot be read is no silence: the task says why.
- What asked while the workspace was watched asks until it is decided: how long the operator was away decides nothing.
  What had been silent for long when it was first watched is past: it keeps its state and its question, can be decided
  on, and asks nothing until its next sign of life. The line is drawn once, and not by the clock or by what other
  sessions do, so whether a task is past follows from the task alone. A decision that somebody is to carry out is a sign
  of life, and so is a program that is known to run.
- Silence asks nothing, for a long test run is silent, too. A process that is known to be gone does: the topmost of
  those that it ran, once. Where a process may run elsewhere, in a container or on another machine, nothing is known.
  An alarm ends with what it is about, and its words may change: what was put aside goes by all but the numbers.
- Two returns that disagree are no result. The first one would be green by chance.
- A decision stands above what the return says, until another return or attempt comes or it expires. Whatever was
  decided, only an answer to a blocked child is no retry: any child could ask for more by naming a blocker. Nor is what
  resumes a PARTIAL that recommends it: error-propagation counts retries of failures.
- A round of a session begins an attempt if it came after a decision about what the attempt before ended with, if it
  was handed a packet or another number, or if its parent asked again after a failure. So the same bytes can be two
  attempts.
- A task that is partial does not need the operator unless its child asks for a review: the parent has the next step.
- One attempt has one decision, and "call the fitter" must not be the last: when the fitter has ended, the task asks
  again, with exactly one retry if the line is restored. A success with a false claim restores nothing, unless the
  operator accepts it. What an aborted child says late undoes no abort.
- A changed file belongs to the task that ran alone when it was written. If several ran, nobody guesses.
- A mode or model that differs is a warning: the child says so itself, and models have aliases.
- Ticking a box in a handoff writes the file again. So its time says nothing once its boxes have moved.
- A missing artifact breaks the contract, but only evidence can tell. The task stays completed, and is contradicted.
"""
