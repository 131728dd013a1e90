"""The details of the selected task."""
