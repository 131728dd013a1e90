"""Turns a text into a handoff or a return, with findings (broken rules). It does no I/O and reads no clock.

It imports pydantic late, so that the screen starts fast. If an agent's answer has several returns, the last is read.
A Markdown return outside fences is preferred to returns in fences and in JSON. An unknown status is never a success.
"""
