"""The demo: a believable session of two minutes, played into a temporary workspace.

Only the agents' work is scripted. Decisions are signed, recorded, delivered, read and carried out by the product's
own code. The play waits while a dialog is open.
"""
