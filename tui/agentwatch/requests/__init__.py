"""Offers the requests of programs, such as permissions, to the operator, and hands the answers back to the programs.

A process of agentwatch, the holder, waits for the answer. While it waits, it locks the request's file. If the process
dies, the system releases the lock. The file gets its name only when it is locked, so nobody sees an offer without a
holder. Several processes may hold one request: all lock the same file, and one of them claims the answer. It claims the
answer before it hands the answer to the program. If it is killed after the claim, the answer is lost, and the program's
own prompt remains. Nothing is offered if the state directory or the keys are in the workspace, where agents can write.
"""
