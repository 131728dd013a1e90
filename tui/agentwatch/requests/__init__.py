"""Requests of programs, offered where the operator sees them, and answered by whoever holds them.

A lock says that somebody waits: the system frees it with the process. It is taken before the file has its name, so
nobody sees an offer that nobody holds. Several may hold one request: all lock the same file, and one claims. The claim
comes before the program gets the answer: what is killed in between loses it, and the program's own prompt stands.
Nothing is offered where the state directory or the keys lie in the workspace: agents write there.
"""
