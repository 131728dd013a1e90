"""Workspaces on other machines: a monitor in a relay there, one here whose source is the link, which nobody trusts."""
