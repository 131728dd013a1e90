"""What the operator reads of a call: what it would do, whole, and apart from that whatever else it is given. Pure.

One text for each: a line of the command can never pass for what the call is given besides, nor that for the command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Final

from agentwatch.delegation.request import Given
from agentwatch.sources.sessions.fields import Fields

_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


def read(given: Fields, *parts: object, known: Collection[str] = ()) -> tuple[str, tuple[Given, ...]]:
    """The parts of a call that say what it would do, each below the other, and all arguments but those that are known:
    they are in the parts, or told elsewhere. All but the last part are paths, and such. Where the parts are no texts,
    all of it is shown as JSON."""
    texts = [part for part in parts if isinstance(part, str)]
    if not texts or len(texts) < len(parts) or not texts[0]:
        return json.dumps(given, ensure_ascii=False, indent=2), ()
    # Each name and value is in one line, and a text in quotation marks.
    beside = (given_as(name, value) for name, value in given.items() if name not in known)
    return "\n".join([*map(in_line, texts[:-1]), texts[-1]]), tuple(beside)


def given_as(name: str, value: object) -> Given:
    return Given(name if _NAME.fullmatch(name) else _json(name), _json(value))


def in_line(text: str) -> str:
    """A path, and such: a line break in it would make what follows pass for something else."""
    return text if text.isprintable() else _json(text)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
