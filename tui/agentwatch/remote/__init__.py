"""Workspaces on other machines: an ordinary monitor in a relay there, an ordinary one here whose source is the link.

The relay's log of all that a tree needs is told in order; after a gap all of it is told anew. A host signs its words
with its key, the operator a decision, which counts once it stands in the host's ledger. Links may lose anything.
"""
