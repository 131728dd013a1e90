"""The demo: a believable session of two minutes, played into a temporary workspace.

Only the work of the agents is scripted. The product's own code signs, records, delivers and reads the decisions. The
session pauses while a dialog is open.
"""
