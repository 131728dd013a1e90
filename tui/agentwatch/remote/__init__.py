"""Workspaces on other machines: a relay there runs a monitor, and a monitor here has the untrusted link as source."""
