"""The history of a workspace: events, acknowledgements, recordings, the log of state changes, errors.json."""

from typing import Final

NAME: Final = "history.db"
"""The database, in the state directory of a workspace."""
