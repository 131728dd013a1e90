"""The demo: a believable session of two minutes, played into a temporary workspace.

Only the work is written beforehand. A decision is signed, recorded, delivered, read and acted on by the code that does
so everywhere. The play waits while a dialog is open.
"""
