"""The dialog in which the operator decides about one task, and the editor of the decision's document."""
