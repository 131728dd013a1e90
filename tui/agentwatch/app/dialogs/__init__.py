"""The operator's decisions on the screen: one dialog, with the fields of its action, one task at a time."""
