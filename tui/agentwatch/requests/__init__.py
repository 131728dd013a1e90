"""Offers the requests of programs to the operator, and hands the answer to the process that holds the request.

A lock on a request's file shows that a process waits; the system releases it when the process dies. It is taken before
the file gets its name, so nobody sees an unheld offer. Several processes may hold one request: all lock the same file,
and one claims the answer. The claim comes before the program gets the answer: a process killed in between loses the
answer, and the program's own prompt remains. Nothing is offered if the state directory or the keys lie in the
workspace, because agents write there.
"""
