"""A call that is asked about as a request, and what the operator reads of it: what it would do, whole, and apart from
that whatever else it is given. Pure.

One text for each: a line of the command can never pass for what the call is given besides, nor that for the command.
"""

import json
import re
from collections.abc import Collection
from typing import Any

from agentwatch.delegation.request import Given, Option, Query, Request, input_text, request_id_of
from agentwatch.sources.sessions.fields import Fields, listed, mapping, text

_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


def request_about(given: object, workspace_id: str, source: str, session_id: str, nonce: str, **values: Any) -> Request:
    """The request about an input, with the id and the digest that follow from it; the rest is in `values`. Raises
    ValueError where the input has no one spelling."""
    spelled, digest = input_text(given)
    return Request(
        request_id=request_id_of(workspace_id, source, session_id, nonce, digest),
        source=source,
        session_id=session_id,
        nonce=nonce,
        input=spelled,
        input_sha256=digest,
        **values,
    )


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


def queries_in(given: Fields, *, several: str = "", key: str = "") -> tuple[Query, ...]:
    """The questions of a call; none where one of them, or an option, lacks its words, or two cannot be told apart.

    `several` and `key` are the names under which a question says that it takes several options, and what its id is.
    """
    found = []
    for asked in map(mapping, listed(given, "questions")):
        question, options = text(asked, "question"), [mapping(one) for one in listed(asked, "options")]
        labels = [text(option, "label") for option in options]
        if question is None or None in labels:
            return ()
        offered = tuple(Option(str(one["label"]), text(one, "description") or "") for one in options)
        named = text(asked, key) or ""
        found.append(Query(question, text(asked, "header") or "", offered, asked.get(several) is True, named))
    return tuple(found) if len({(one.question, one.key) for one in found}) == len(found) else ()


def given_as(name: str, value: object) -> Given:
    return Given(name if _NAME.fullmatch(name) else _json(name), _json(value))


def in_line(text: str) -> str:
    """A path, and such: a line break in it would make what follows pass for something else."""
    return text if text.isprintable() else _json(text)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
