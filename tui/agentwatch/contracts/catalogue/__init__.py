"""What the rules are and why: text only, one module a contract."""
