"""Why a NATS server cannot be used, and what to do, in words."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors

_CERTIFICATES: Final = {
    9: "is not valid yet: look at the clocks of the server and of this machine",
    10: "has expired: whoever runs the server has to renew it",
    62: (_OTHER_NAME := "is for another name: use one that it is for"),
    64: _OTHER_NAME,
}
"""What is wrong with a certificate, by OpenSSL's number of it; all else is about who has signed it."""


class TroubleError(Exception):
    """A connection cannot do what it is for. The message is a plain sentence that says what to do."""


def url_of(server: str) -> str:
    """A server's address with its scheme, which may be left out."""
    return server if "://" in server else f"nats://{server}"


def shown(server: str) -> str:
    """A server's address without a password in it."""
    parts = urlsplit(url_of(server))
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


def in_words(error: BaseException, server: str) -> str:
    """Why a server cannot be used, and what to do, in a plain sentence."""
    name, text = shown(server), str(error)
    match error:
        case TroubleError():
            return text
        case ssl.SSLCertVerificationError():
            known = _CERTIFICATES.get(error.verify_code)
            why = known or f"is not trusted ({error.verify_message or text}): name the file of its CA in SSL_CERT_FILE"
            return f"the certificate of {name} {why}"
        case ssl.SSLError():
            return f"{name} and this machine do not agree on TLS: {error.reason or text}"
        case nats.errors.AuthorizationError():
            return _refused(name)
        case nats.js.errors.NoStreamResponseError() | nats.js.errors.NotFoundError():
            return f"{name} has no streams of agentwatch: `agentwatch fleet init {name}` makes them"
        case nats.js.errors.ServiceUnavailableError() | nats.errors.NoRespondersError():
            return f"{name} has no JetStream: write `jetstream {{}}` into its configuration"
        case TimeoutError() | nats.errors.TimeoutError():
            return f"{name} does not answer in time"
        case nats.errors.UnexpectedEOF() | EOFError():
            return f"{name} has ended the connection"
        case OSError():
            number = None if isinstance(error, socket.gaierror) else error.errno
            why = os.strerror(number) if number else error.strerror or text or type(error).__name__
            return f"{name} cannot be reached ({why}): is it running, and may this machine reach it?"
    if "authorization" in text.lower() or "authentication" in text.lower():
        return _refused(name)
    if "permissions violation" in text.lower():
        what = text.split("violation", 1)[1].strip(" '")
        return f"{name} does not allow this key the {what.removeprefix('for ')}: see `agentwatch fleet config`"
    return f"{name}: {text.removeprefix('nats: ') or type(error).__name__}"


def _refused(name: str) -> str:
    return f"{name} does not know this key: `agentwatch fleet config` prints the part of its configuration that does"
