"""What the operator decided: recorded once, signed, delivered into the workspace, and read by the agents."""
