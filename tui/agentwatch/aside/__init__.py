"""What the operator has looked at and put aside: one file in the state directory, for all screens and commands.

Nothing of it is a decision, nothing of it is signed, and nothing of it reaches an agent or the workspace.

    <state directory>/put-aside.jsonl

A line is a record, added under a lock. `began` is the first: nothing that is older is new to the operator.
`acknowledge` and `snooze` put tasks aside as they looked then (see `delegation.aside` for marks), `over` says of which
of them a screen saw something else since, `undo` takes one of these back, `seen` says what was looked at. A line that
breaks off never counted, and the next writer removes it; any other that is no record is left, and told. A long file is
written anew without what counts no more.
"""

from typing import Final

NAME: Final = "put-aside.jsonl"
