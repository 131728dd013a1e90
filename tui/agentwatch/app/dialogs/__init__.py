"""The dialog in which the operator decides about one task at a time, with the fields of that decision."""
