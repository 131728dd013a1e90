"""Stores each request in a file. The process that waits for the answer (the holder) locks the file while it waits.

    <state directory>/requests/                 0700
        <request id>.json                       0600, locked as long as somebody holds it

If a file is not locked and does not say how the request ended, the holder was killed. The request is then gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentwatch.decisions.errors import reason, remedy
from agentwatch.delegation.decision import (
    OF_REQUESTS,
    CallArgument,
    Option,
    Query,
    Request,
    RequestStage,
    canonical_input,
    make_request_id,
)
from agentwatch.disk import OPEN_HELD, UNSYNCED, Directory, Disk, fingerprint, fingerprint_at, is_open_to_others
from agentwatch.errors import AgentwatchError
from agentwatch.sources.sessions.fields import Fields, as_object, list_at, text
from agentwatch.state import leads_through, state_directory, workspace_id
from agentwatch.text import quote_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter


NAME = "requests"
MOST_ENDED = 100  # ended requests that are kept; older requests are removed once there are twice as many files

LARGEST = 1024 * 1024  # most bytes of a file; a larger request must be answered in its program

_MOST_SECONDS = 2**40


class RequestError(AgentwatchError):
    """A request cannot be offered, or a file is no valid request. The request must be answered in its program."""


class RequestStore:
    """The requests of one workspace, in its state directory. Threads and processes may use it concurrently."""

    def __init__(self, workspace: Path, *, state: Path | None = None, disk: Disk = UNSYNCED):
        self.directory = (state or state_directory(workspace)) / NAME
        self.workspace_id = workspace_id(workspace)
        # A sentence for each file that was no valid request at the last read. May quote untrusted text.
        self.problems: list[str] = []
        self._workspace = workspace
        self.disk = disk

    def offer(self, request: Request) -> Offer:
        """Offer a request until the returned offer ends. Offers of one request share a file. May raise RequestError."""
        data = to_bytes(request.as_first_asked, self.workspace_id)
        with self.open_directory(make=True) as directory, directory.locked():
            directory.remove_abandoned(0)
            if len(directory.names()) >= 2 * MOST_ENDED:
                for one in [one for one in self._read(directory) if not one.is_open][:-MOST_ENDED]:
                    directory.remove(_file_name(one.request_id))
            descriptor = self._join_holders(directory, request)
            if descriptor is None:
                descriptor = directory.replace_and_lock(_file_name(request.request_id), data)
        return Offer(self, request, descriptor)

    def read(self) -> list[Request]:
        """Return the requests with their stages, oldest first. Never raises."""
        self.problems = []
        try:
            with self.open_directory() as directory:
                return self._read(directory)
        except FileNotFoundError:
            pass
        except RequestError as error:
            self.problems = [f"requests are not seen: {error}"]
        return []

    def find(self, request_id: str) -> Request | None:
        """Return a request as it is now. Return None if its file is missing or not valid."""
        with suppress(OSError, RequestError), self.open_directory() as directory:
            return self._read_request(directory, _file_name(request_id))
        return None

    @contextmanager
    def open_directory(self, *, make: bool = False) -> Iterator[Directory]:
        """Open the store's directory. Raises FileNotFoundError if it is missing, or RequestError."""
        require_outside(self._workspace, self.directory)
        try:
            with (Directory.open_or_make if make else Directory.open)(self.directory, self.disk) as directory:
                status = self.disk.fstat(directory.descriptor)
                if is_open_to_others(status):
                    raise RequestError(f"{self.directory} is open to others, or not yours: chmod 700 {self.directory}")
                yield directory
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RequestError(f"{self.directory}: {reason(error)}; {remedy(error)}") from error

    def _read(self, directory: Directory) -> list[Request]:
        found: list[Request] = []
        for name in sorted(name for name in directory.names() if not name.startswith(".")):
            try:
                found.append(self._read_request(directory, name))
            except FileNotFoundError:
                pass
            except (OSError, RequestError) as error:
                why = reason(error) if isinstance(error, OSError) else error
                self.problems.append(f"{self.directory}: {quote_text(name)} is no request: {why}; remove it")
        return sorted(found, key=lambda one: (one.asked_at, one.request_id))

    def _read_request(self, directory: Directory, name: str) -> Request:
        request = parse(data := directory.read(name, LARGEST), self.workspace_id)
        if name != _file_name(request.request_id):
            raise RequestError("it has the name of another one")
        if request.stage is not RequestStage.OFFERED or self._is_held(directory, name):
            return request
        # The holder may have written the end just after the file was read. Then read the file again.
        is_same = directory.read(name, LARGEST) == data
        return replace(request, stage=RequestStage.GONE) if is_same else self._read_request(directory, name)

    def _is_held(self, directory: Directory, name: str) -> bool:
        """Tell whether a process holds a file. If two processes call this at once, each may take the other for the
        holder."""
        descriptor = self.disk.open(name, OPEN_HELD, dir_fd=directory.descriptor)
        try:
            self.disk.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            self.disk.close(descriptor)

    def _join_holders(self, directory: Directory, request: Request) -> int | None:
        """If other processes hold the request, lock their file, too, and return its descriptor. Return None if nobody
        holds the request. The caller must have locked the directory."""
        name = _file_name(request.request_id)
        with suppress(OSError, RequestError):
            known = self._read_request(directory, name)
            if known.is_open and comparable_form(known) == comparable_form(request):
                descriptor = self.disk.open(name, OPEN_HELD, dir_fd=directory.descriptor)
                try:
                    # This may wait for `_is_held` in another process, which locks the file very briefly.
                    self.disk.flock(descriptor, fcntl.LOCK_SH)
                    return descriptor
                except OSError:
                    self.disk.close(descriptor)
        return None


class Offer:
    """A request that this process holds, for a `with` statement. If it is still open at the end, it becomes GONE."""

    _is_held = True

    def __init__(self, store: RequestStore, request: Request, descriptor: int):
        self.request = request
        self._descriptor = descriptor
        self.looked: tuple[object, float] = None, 0.0  # the ledger's stamp and the time when it was last read
        self._store = store
        self._path = store.directory / _file_name(request.request_id)
        self._stamp = fingerprint(os.fstat(descriptor))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(RequestStage.GONE)

    def is_unreplaced(self) -> bool:
        """Tell whether the file under the request's name is still the file that this offer wrote."""
        return self._is_held and fingerprint_at(self._path) == self._stamp

    def write_call_id(self, call_id: str) -> None:
        """Write the id of the request's call into the file, once the id is known. Ignores failures."""
        store = self._store
        with suppress(OSError, RequestError), store.open_directory() as directory, directory.locked():
            if self.is_unreplaced():
                request = replace(self.request, call_id=call_id)
                descriptor = directory.replace_and_lock(self._path.name, to_bytes(request, store.workspace_id))
                os.close(self._descriptor)
                self.request, self._descriptor, self._stamp = request, descriptor, fingerprint(os.fstat(descriptor))

    def end(self, stage: RequestStage, by: str = "") -> None:
        """Write into the file how the request ended, and release the request. GONE is written only if no other process
        holds the request. Never raises, because a released request without an end is shown as gone."""
        if not self._is_held:
            return
        store = self._store
        with suppress(OSError, RequestError), store.open_directory() as directory, directory.locked():
            if stage is RequestStage.GONE:
                store.disk.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.is_unreplaced():
                ended = replace(self.request, stage=stage, ended_at=time.time(), by=by)
                directory.replace(self._path.name, to_bytes(ended, store.workspace_id))
        self._is_held = False
        with suppress(OSError):
            os.close(self._descriptor)


def require_outside(workspace: Path, place: Path) -> None:
    """Raise RequestError if a path leads through the workspace, because agents can write there."""
    if leads_through(place, workspace):
        raise RequestError(f"{place} lies in the workspace, where agents write: set XDG_STATE_HOME to another place")


def comparable_form(request: Request) -> Request:
    """Return a request without the fields in which its holders differ, so that two requests can be compared."""
    return replace(request.as_first_asked, asked_at=0.0, until=None, call_id=None)


def to_bytes(request: Request, workspace_id: str) -> bytes:
    """Return the bytes of a request's file. Raises RequestError if the request is not valid or too large."""
    try:
        data = _serialize(request, workspace_id)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"it cannot be written ({error})") from error
    if len(data) > LARGEST:
        raise RequestError(f"it has {len(data):,} bytes, {LARGEST:,} are allowed")
    if not _is_sound(request, workspace_id):
        raise RequestError("it is none that could be answered")
    return data


def parse(data: bytes, workspace_id: str) -> Request:
    """Return the request in a file's bytes. Raises RequestError for bytes that `to_bytes` would not write."""
    with suppress(ValueError, RecursionError):
        request = _request_schema().validate_json(data, strict=True)
        if _serialize(request, workspace_id) == data and _is_sound(request, workspace_id):
            return request
    raise RequestError("it is not what agentwatch writes")


def _is_sound(request: Request, workspace_id: str) -> bool:
    identity = workspace_id, request.source, request.session_id, request.nonce, request.input_sha256
    return (
        canonical_input(json.loads(request.input)) == (request.input, request.input_sha256)
        and request.request_id == make_request_id(*identity)
        and set(request.actions) <= set(OF_REQUESTS)
        and all(0 <= at < _MOST_SECONDS for at in (request.asked_at, request.until or 0, request.ended_at or 0))
    )


def _serialize(request: Request, workspace_id: str) -> bytes:
    values = {name: getattr(request, name) for name in Request.__slots__ if name != "allowed"}
    queries = [one._asdict() | {"options": [option._asdict() for option in one.options]} for one in request.queries]
    document = {"version": 1, "workspace_id": workspace_id, **values, "queries": queries}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


@cache
def _request_schema() -> TypeAdapter[Request]:
    # Loaded late because most processes read no request.
    from pydantic import TypeAdapter

    return TypeAdapter(Request)


def _file_name(request_id: str) -> str:
    return f"{request_id}.json"


_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


def make_request(given: object, workspace_id: str, source: str, session_id: str, nonce: str, **values: Any) -> Request:
    """Make a request about the input `given`, with its id and digest. `values` are the other fields. Raises ValueError
    if the input cannot be written as JSON."""
    spelled, digest = canonical_input(given)
    return Request(
        request_id=make_request_id(workspace_id, source, session_id, nonce, digest),
        source=source,
        session_id=session_id,
        nonce=nonce,
        input=spelled,
        input_sha256=digest,
        **values,
    )


def read(given: Fields, *parts: object, known: Collection[str] = ()) -> tuple[str, tuple[CallArgument, ...]]:
    """Return the text that shows a call, and the arguments to show beside the text. The text has the `parts`, one below
    the other. If there are no parts, or a part is no text, the text is the whole call as JSON. Arguments whose
    names are in `known` are left out."""
    texts = [part for part in parts if isinstance(part, str)]
    if not texts or len(texts) < len(parts) or not texts[0]:
        return json.dumps(given, ensure_ascii=False, indent=2), ()
    beside = (make_given(name, value) for name, value in given.items() if name not in known)
    return "\n".join([*map(to_one_line, texts[:-1]), texts[-1]]), tuple(beside)


def read_queries(given: Fields, *, several: str = "", key: str = "") -> tuple[Query, ...]:
    """Return the questions of a call, or () if a text is missing or two questions are equal.

    `several` names the field which says that a question takes several options. `key` names the field with the id.
    """
    found = []
    for asked in map(as_object, list_at(given, "questions")):
        question, options = text(asked, "question"), [as_object(one) for one in list_at(asked, "options")]
        labels = [text(option, "label") for option in options]
        if question is None or None in labels:
            return ()
        offered = tuple(Option(str(one["label"]), text(one, "description") or "") for one in options)
        named = text(asked, key) or ""
        found.append(Query(question, text(asked, "header") or "", offered, asked.get(several) is True, named))
    return tuple(found) if len({(one.question, one.key) for one in found}) == len(found) else ()


def make_given(name: str, value: object) -> CallArgument:
    return CallArgument(name if _NAME.fullmatch(name) else _to_json(name), _to_json(value))


def to_one_line(text: str) -> str:
    """Return a text in one line, as JSON if it is not printable. A line break could feign another part of a request."""
    return text if text.isprintable() else _to_json(text)


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
