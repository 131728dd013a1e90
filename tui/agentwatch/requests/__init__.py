"""Offers the requests of programs to the operator, and hands the answer to the process that holds the request.

A process holds a request by a lock on the request's file. The system releases the lock when the process dies. The lock
is taken before the file gets its name, so nobody sees an offer without a lock. Several processes may hold one request:
all lock the same file, and one of them claims the answer. It claims the answer before the program gets it. If the
process is killed in between, the answer is lost, and the program's own prompt remains. Nothing is offered if the state
directory or the keys lie in the workspace, because agents write there.
"""
