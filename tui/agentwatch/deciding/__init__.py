"""Decisions from the shell: agents wait for them and claim them, operators make, verify and protect them."""
