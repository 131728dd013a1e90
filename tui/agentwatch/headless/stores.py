"""The session stores without a screen: what is read of them, and what is not."""

from __future__ import annotations

import json
from dataclasses import asdict

from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.text import clean, complain, say


def print_sources(source: SessionsSource, *, as_json: bool) -> int:
    """Look into the session stores once and say what is there."""
    source.scan()
    found, trouble = source.found(), source.trouble
    source.close()
    if as_json:
        say(json.dumps({"sources": [asdict(one) for one in found], "trouble": trouble}, indent=2))
        return 0
    for one in found:
        noun = "session" if one.sessions == 1 else "sessions"
        children = "child" if one.children == 1 else "children"
        skipped = f"  skipped: {clean(one.skipped)}" if one.skipped else ""
        counted = f"{one.sessions:>5} {noun:<8}  {one.children:>5} {children:<8}"
        say(f"{clean(one.source, 24):<14} {counted}  {clean(one.place)}{skipped}")
    if not found:
        say("no agent's sessions were found")
    for sentence in trouble:
        complain(f"agentwatch: {clean(sentence)}")
    return 0
