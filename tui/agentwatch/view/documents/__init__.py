"""The JSON that other programs read, as types: what the commands print, and what agentwatch writes for others.

Nothing imports this when it runs. mypy holds what builds a document to its type here, and the JSON schemas beside the
manual are made of the types. Keys may be added; those that are here stay. Times are ISO 8601 in UTC. Texts are foreign
and unsanitised.
"""
