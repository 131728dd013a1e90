"""What an operator signs on another machine: the decision that a host is asked to record, and until when it may.

The host alone decides. What it records holds the very envelope, so whoever reads the record sees both signatures, and
that both say the same.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, NamedTuple

from agentwatch.decisions.envelope import REQUEST_TYPE, SigningKey, Trust, UntrustedError, opened, seal
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.record import OF_REQUEST, VERSION, Record, record_of, time_of
from agentwatch.decisions.strict import compact, hex_digits, parsed

AHEAD: Final = timedelta(minutes=2)
"""So far the clock of an operator may be ahead of the host's."""

_VERSION: Final = 1
_OF_HOST: Final = {"version": VERSION, "seq": 1, "prev_sha256": None, "operator": "nobody yet"}
"""What the host fills in by itself."""


class SignedRequest(NamedTuple):
    """`host` is the key id of the host that is asked, which may record this until `record_by`, a time as in a record.

    `asked` is the record that it is to make. Its number, what is before it, and who the operator is, the host knows:
    here they say nothing. It was made when it was signed, by the host's clock as it was known to the operator.
    """

    host: str
    record_by: str
    asked: Record

    def to_bytes(self) -> bytes:
        """The one spelling. Raises RecordError where there is none."""
        said = {name: value for name, value in self.asked.document().items() if name not in _OF_HOST}
        return compact({"version": _VERSION, "host": self.host, "record_by": self.record_by, **said}).encode()

    def why_not(self, record: Record, keyid: str) -> str | None:
        """Why a record that this host has signed is not the one that is asked for; None where it is."""
        if self.host != keyid:
            return "it was signed for another host"
        said = self.asked.document() | {name: getattr(record, name) for name in (*_OF_HOST, "created_at")}
        if record.document() != said | {"signed_request": record.signed_request}:
            return "the host has recorded something else than what was signed for it"
        if not time_of(self.asked.created_at) - AHEAD <= time_of(record.created_at) <= time_of(self.record_by):
            return "it was recorded before it was signed, or when its time was over"
        return None


def sign(request: SignedRequest, key: SigningKey) -> str:
    """The text of the envelope that a host is sent. Raises RecordError for what no host would read."""
    data = request.to_bytes()
    _parse(data)
    return seal(data, key, REQUEST_TYPE).decode("ascii")


def read(text: str, trust: Trust) -> tuple[SignedRequest, str]:
    """What an operator signed, and with which key (its id): one that may ask, whatever became of it since.

    Raises EnvelopeError, UntrustedError where it is none of these keys, and RecordError.
    """
    keys = {name: key.public for name, key in trust.asking.items()}
    data, keyid = opened(text.encode(errors="replace"), keys, REQUEST_TYPE)
    return _parse(data), keyid


def verify_inside(record: Record, keyid: str, trust: Trust) -> None:
    """See that an operator asked for a record that the key of the host has signed. Raises as `read` does."""
    if record.signed_request is None:
        return
    request, operator = read(record.signed_request, trust)
    ended = trust.asking[operator].retired_at
    if ended is not None and record.created_at > ended:
        raise UntrustedError(f"it is signed with the key {operator[:16]}…, which was not trusted any more at that time")
    if why := request.why_not(record, keyid):
        raise RecordError(why)


def _parse(data: bytes) -> SignedRequest:
    try:
        document: Any = parsed(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is not JSON ({error})") from error
    if not isinstance(document, dict) or type(document.get("version")) is not int:
        raise RecordError("it asks for no decision")
    if document["version"] != _VERSION:
        raise RecordError(f"version {str(document['version'])[:20]} of it is not known here; update agentwatch")
    host, record_by = document.pop("host", None), document.pop("record_by", None)
    hex_digits(64, "host", host)
    own = _OF_HOST | {"version": OF_REQUEST if "request" in document else VERSION}
    request = SignedRequest(host, record_by, record_of(document | own))
    if request.to_bytes() != data:
        raise RecordError("it is not spelled as agentwatch spells it")
    asked = request.asked
    try:
        in_time = time_of(asked.created_at) <= time_of(record_by)
    except (TypeError, ValueError) as error:
        raise RecordError("record_by must be a time in UTC such as 2030-01-01T00:00:00Z") from error
    if not in_time or (asked.expires_at is not None and record_by > asked.expires_at):
        raise RecordError("it would be recorded before it was signed, or when it holds no more")
    return request
