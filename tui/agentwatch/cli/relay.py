"""Two commands: `relay` shows this machine's workspaces on other machines, and `fleet` prepares a NATS server."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import CREDS, argument, command, flag
from agentwatch.cli.keys import public_key
from agentwatch.composition import build_desk, build_monitor
from agentwatch.config import load
from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.keys import Keys, Role, parse_name_and_key
from agentwatch.disk import Directory
from agentwatch.errors import ExitCode, UsageError, WorkspaceError
from agentwatch.remote.address import is_host_name
from agentwatch.remote.nats_accounts import format_accounts, merge_accounts, nkey_of
from agentwatch.remote.pipe import Link, LinkState, StdioEnd
from agentwatch.remote.relay import Relay, RelayedWorkspace
from agentwatch.shell import FLEET, find_program, require_extra
from agentwatch.state import user_home
from agentwatch.text import clean, print_error, print_text, quote_text
from agentwatch.workspaces import WorkspaceFinder, name_workspaces

_PORT = 4222
_CONFIGURATION = """\
# For nats-server, by `agentwatch fleet config`: who may say and read what, from the keys that are trusted on this
# machine. Name this file to it again when those change, and then: nats-server --signal reload
listen: "0.0.0.0:{port}"
max_payload: 8MB
jetstream {{ store_dir: "./agentwatch-nats" }}
# Encrypted, as it should be wherever others can listen:
# tls {{ cert_file: "server.pem", key_file: "server.key" }}
{accounts}"""


@command(
    argument("paths", "PATH", "workspaces (default: the current directory)", nargs="*"),
    flag("--all", "every workspace in which a session was alive in the last day"),
    flag("--stdio", "through input and output, as ssh runs it for `agentwatch ssh://HOST/PATH`"),
    argument("--nats", "URL", "through this NATS server, for `agentwatch nats://SERVER/NAME`"),
    CREDS,
    argument(
        "--trust",
        "NAME=KEY",
        "trust the key of this operator first; once for each operator",
        action="append",
        default=[],
    ),
    argument("--name", "NAME", "another name for this host (default: its own)", default=""),
)
def relay(options: Namespace) -> int:
    """Show workspaces of this machine on other machines, and record the decisions of operators whose keys are trusted
    here.
    """
    gc.enable()
    if options.stdio == bool(options.nats):
        raise UsageError("say how it is told: --stdio, as ssh runs it, or --nats URL")
    for name, public in list(map(parse_name_and_key, options.trust)):
        Keys().trust_key(Role.OPERATOR, public, name)
    # Redirect standard output before anything else can be written to the stream that the screen reads.
    end: Link | None = _open_stdio_link() if options.stdio else None
    # `requested` maps each workspace to the paths that name it. A ~ in an ssh address is expanded here, not by a shell.
    requested, missing = dict[Path, list[str]](), dict[str, WorkspaceError]()
    everywhere = WorkspaceFinder() if options.all else None
    if everywhere:
        requested = {place.workspace: [] for place in everywhere().places}
        missing = {} if requested else {"": WorkspaceError("no session of an agent was alive there in the last day")}
    for path in () if options.all else options.paths or ["."]:
        try:
            requested.setdefault(workspace_at(os.path.expanduser(path)), []).append(path)  # noqa: PTH111
        except WorkspaceError as error:
            missing[path] = error
    if missing and not options.all and not (requested and options.stdio):
        raise next(iter(missing.values()))
    settings = load()
    # One key signs both the decisions and the messages of this host. The key is created at its first use.
    desk = build_desk(next(iter(requested), user_home()), settings)
    if why := desk.why_locked():
        raise UsageError(f"{why}: a relay cannot ask for it; `agentwatch keys passphrase` takes it away")

    def make_part(workspace: Path, name: str) -> RelayedWorkspace:
        monitor = build_monitor(workspace, settings, open_desk=partial(build_desk, workspace, settings))
        return RelayedWorkspace(name, monitor, requested.setdefault(workspace, []))

    def find_new_parts() -> list[RelayedWorkspace]:
        found = everywhere().places if everywhere else ()
        return [make_part(one.workspace, one.name or "") for one in found if one.workspace not in requested]

    parts = [make_part(workspace, name) for workspace, name in name_workspaces(requested).items()]
    words = {path: clean(str(error)) for path, error in missing.items()}
    key = desk.load_key()
    end = end or _open_nats_link(options, key)
    deciders = partial(_decider_ids, key)
    active_relay = Relay(parts, end, key, host=options.name, missing=words, deciders=deciders, find=find_new_parts)

    async def relay_until_end() -> str:
        """Run the relay until it ends. Return the reason for the end."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, active_relay.end)
        return await active_relay.run()

    if ended := asyncio.run(relay_until_end()):
        print_error(f"agentwatch: the relay has ended: {ended}")
    return ExitCode.DONE


def _open_stdio_link() -> StdioEnd:
    """Return a link over standard input and output. From now on, `print` writes to standard error."""
    outgoing = os.dup(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    os.dup2(2, 1)
    return StdioEnd(0, outgoing)


def _open_nats_link(options: Namespace, key: SigningKey) -> Link:
    """Return a link over a NATS server. Changes of the link's state are reported on standard error."""
    with require_extra(*FLEET):
        from agentwatch.remote.nats import Login, NatsEnd, credentials_file, hide_password

    deciding = {clean(one.name): None for one in Keys().trusted_keys(Role.OPERATOR)}
    host = options.name or socket.gethostname()
    port = urlsplit(options.nats if "://" in options.nats else f"//{options.nats}").port or _PORT
    introduced_as = f"{host if is_host_name(host) else 'NAME'}={key.public.text}"
    print_text(f"relaying over {clean(hide_password(options.nats))} as {key.public.text}")
    print_text(f"may decide here: {', '.join(deciding) or 'nobody yet; `--trust NAME=KEY` says who may'}")
    listening = f" --port {port}" if port != _PORT else ""
    config = f"agentwatch fleet config{listening} --trust {introduced_as} nats.conf"
    print_text(f"next, unless the server knows this host: {config}")
    if sys.stdout is not None:
        # Without a flush, these lines would reach the log of a service only when the relay ends.
        sys.stdout.flush()
    return NatsEnd(options.nats, key, login=Login(key, credentials_file(options.creds)), note=_report_state)


def _report_state(state: LinkState) -> None:
    print_error("agentwatch: connected" if state.up else f"agentwatch: {clean(state.words, 600)}; trying again")


def _decider_ids(own: SigningKey) -> list[str]:
    """Return the ids of the keys whose owners may decide on this host."""
    with suppress(KeyProblemError):
        return [own.public.keyid, *(one.public.keyid for one in Keys().trusted_keys(Role.OPERATOR))]
    return []


@command(
    argument("what", "WHAT", "config: write its configuration; init: make its store", choices=("config", "init")),
    argument(
        "where",
        "FILE|URL",
        "with config: the file; your own lines in it stay (default: standard output); with init:"
        " the server, such as nats://hub:4222",
        nargs="?",
    ),
    argument("--port", "N", f"with config: where a new server listens (default: {_PORT})", type=int, default=_PORT),
    argument(
        "--trust",
        "NAME=KEY",
        "with config: trust the key of this host first; once for each host",
        action="append",
        default=[],
    ),
    argument("--replicas", "N", "with init: how many servers of a cluster keep a copy", type=int, default=1),
    CREDS,
)
def fleet(options: Namespace) -> int:
    """Prepare a NATS server: write its configuration, and make the store of a fleet."""
    is_init, keys = options.what == "init", Keys()
    if is_init and (options.trust or not options.where):
        raise UsageError("`agentwatch fleet init` takes a server, such as nats://hub:4222, and no --trust")
    if not is_init:
        return _configure_server(keys, options)
    with require_extra(*FLEET):
        from agentwatch.remote.nats import TroubleError, ask_server, hide_password, login_of, make_store
    try:
        ask_server(options.where, login_of(options.creds, keys), lambda client: make_store(client, options.replicas))
    except TroubleError as error:
        raise UsageError(clean(str(error), 600)) from error
    where = clean(hide_password(options.where))
    print_text(f"made: it keeps the latest entry of each host; next, to watch: agentwatch {where}")
    return ExitCode.DONE


def _configure_server(keys: Keys, options: Namespace) -> int:
    """Trust the hosts that `--trust` names. Then write a server's configuration for all trusted keys."""
    introduced_hosts = list(map(parse_name_and_key, options.trust))
    for name, public in introduced_hosts:
        if not is_host_name(name):
            raise UsageError(f"{quote_text(name)} cannot be the name of a host: use letters, digits, '.', '_' and '-'")
        if any(one.name == name and one.public != public for one in keys.trusted_keys(Role.HOST)):
            again = f"or, if it has a new key, first `agentwatch keys distrust {name} --host`"
            raise UsageError(f"{name} is the name of another machine: call this one otherwise, {again}")
    for name, public in introduced_hosts:
        keys.trust_key(Role.HOST, public, name)
    own = public_key(keys)
    named = {role: [(one.name, one.public) for one in keys.trusted_keys(role)] for role in Role}
    operators = [("you", own), *(one for one in named[Role.OPERATOR] if one[1] != own)]
    hosts = [one for one in named[Role.HOST] if one[1] not in {key for _, key in operators}]
    new = format_accounts(operators, hosts)
    # Look also in directories that are often missing in a user's PATH.
    server = find_program("nats-server") or find_program("nats-server", "/usr/sbin:/usr/local/sbin") or "nats-server"
    next_step = f"{server} -c {options.where or 'FILE'}, and once that runs: agentwatch fleet init nats://SERVER"
    if not options.where:
        sys.stdout.write(_CONFIGURATION.format(accounts=new, port=options.port))
    else:
        path = Path(options.where).resolve()
        was_there = path.exists()
        known_operators = [("", one.public) for one in (*keys.known_keys(Role.OPERATOR), *keys.trust().keys)]
        ours = format_accounts(known_operators, [("", one.public) for one in keys.known_keys(Role.HOST)])
        head = _CONFIGURATION.format(accounts="", port=options.port)
        parts = merge_accounts(_read_configuration(path), new, ours) if was_there else (head, new, "")
        _write_configuration(path, *parts, server)
        print_text(f"written: {clean(options.where)}{', with all that you have written in it' if was_there else ''}")
        if was_there:
            next_step = f"{server} --signal reload, or reload=PID where another runs beside it"
        elif _is_port_taken(options.port):
            why = "Debian's package starts a server of its own; `sudo systemctl disable --now nats-server` ends it"
            print_error(f"port {options.port} is taken on this machine ({why}), or take another with --port")
    if hosts:
        print_error(f"next: {next_step}")
    else:
        print_error("no host is trusted here yet: `agentwatch relay --nats nats://SERVER` on it says how")
    if keys.why_encrypted():
        print_error(
            "your key has a passphrase, so it cannot log you in: make yourself an nkey, add it beside"
            f" {nkey_of(own)[:12]}…, and name its file in NATS_NKEY"
        )
    return ExitCode.DONE


def _read_configuration(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{clean(str(path))} cannot be read: {error}; it is as it was") from error


def _write_configuration(path: Path, head: str, block: str, tail: str, server: str) -> None:
    """Write a configuration atomically. If the installed nats-server rejects the accounts, raise UsageError and
    leave the file as it was."""
    try:
        if server.startswith("/"):
            with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", encoding="utf-8") as candidate:
                candidate.write(block)
                candidate.flush()
                done = subprocess.run([server, "-t", "-c", candidate.name], capture_output=True, text=True, check=False)  # noqa: S603
            if done.returncode:
                why = (done.stderr or done.stdout).strip().rpartition("\n")[2].replace(candidate.name, "its accounts")
                raise UsageError(
                    f"{clean(str(path))} is as it was: with what you have written in it, {clean(why, 400)}"
                )
        with Directory.open(path.parent) as directory:
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
            directory.replace(path.name, f"{head}{block}{tail}".encode(), mode)
    except OSError as error:
        raise UsageError(f"{clean(str(path))} cannot be written: {error.strerror}; it is as it was") from error


def _is_port_taken(port: int) -> bool:
    with socket.socket() as candidate:
        return candidate.connect_ex(("127.0.0.1", port)) == 0
