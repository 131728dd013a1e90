"""What Claude Code keeps of its sessions, read as runs: see `claude_code_reader`.

Most lines of a transcript are never parsed. In the middle of a run a line says that the agent lives and how many
tokens it took, in places that bytes can be searched for. A property test holds that parsing everything gives the same
runs.

The program writes that it waits, and not which agent asks. So that is inferred: the agent whose use of a tool came
just before, or the only one without a result. If there are several, the session asks: a wrong name would be worse than
none.
"""

from typing import Final

NAME: Final = "claude-code"
"""What its runs call the program."""
