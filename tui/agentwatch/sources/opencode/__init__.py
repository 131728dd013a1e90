"""Sessions of OpenCode and Kilo Code, read as runs: see `opencode_reader`."""
