"""The history of a workspace: events, acknowledgements, recordings, the log of state changes, errors.json."""

from typing import Final

NAME: Final = "history.db"
"""The database, in the state directory of a workspace."""
OLD_NAME: Final = "put-aside.jsonl"
"""The acknowledgements of earlier versions, a JSON object a line. The next writer takes them over and renames it."""
