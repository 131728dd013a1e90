"""The history of a workspace: events, acknowledgements, recordings, the log of state changes, errors.json."""
