"""`agentwatch init`: shows what it would change, changes it with --write, and takes it back with --remove.

A file that is plain JSON is read, and written anew with ours in it. Where it is none, as with comments, a person is
shown what to add.

The commands name an interpreter with `-I -S`, our file, and where the packages lie. Otherwise the current directory, a
PYTHON* variable or a `.pth` file could run somebody else's code. The words need no quotes: agents' rules hold them.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from agentwatch.agents.hook.command import Journal
from agentwatch.config import Settings
from agentwatch.disk import Directory
from agentwatch.errors import WorkspaceError
from agentwatch.shell import command_line, install_line, launcher
from agentwatch.sources.claude_code.hooks import ASKS
from agentwatch.text import Check, bad, clean, good, note, say

NAME: Final = "agentwatch"
CLAUDE_SETTINGS: Final = ".claude/settings.json"
# Seconds that a hook has beside its waiting, before the program ends it: that would let the child go unsaid.
HOOK_SLACK: Final = 30

HELD_SECONDS: Final = 24 * 3600  # The longest that a request is held whose prompt stands in the program meanwhile

_MCP_SLACK: Final = 75  # The same for `wait_for_decision`; OpenCode and Kilo would end it after 60 s

_INSTRUCTIONS: Final = """\
## Delegation: agentwatch

A human operator watches this workspace with agentwatch and decides what happens to work that fails. In the shell, run
`<agentwatch>` where these lines say `agentwatch`.

- Hand over: give every child a handoff packet (`task_id`, `objective`, `evidence`, `success_criteria`, `risks`) as the
  first block of its prompt. Submit it first with the tool `submit_handoff`; without that tool, write it to
  `handoffs/<task_id>.handoff.json`.
- Give back: every child ends with a return in the return format (`## Status`, `## Deliverables`, `## Evidence`,
  `## Runtime Attestation`) and nothing else, checked before with the tool `validate_return` or `agentwatch check FILE`.
  Hand it in with `submit_return`, word for word; without that tool, write it to `returns/<task_id>.return.md`.
- Wait: when a task is failed, blocked or invalid, or a claim of its return is false, do not retry, escalate or give
  up by yourself. Call the tool `wait_for_decision`, or run `agentwatch wait -- '<task_id>'` in the shell, again and
  again while it says pending. Pending is neither an approval nor a refusal.
- Carry out exactly what the decision says in `do_now`. A further attempt carries `attempt` and the `decision_id`.
- `get_contract` and `agentwatch rules` tell the rules of the formats.
"""


_CLAUDE_ASKS: Final = (
    "it starts the server of .mcp.json once you have approved it: a dialog asks when a session begins; say yes."
    " /mcp shows how it stands, and `claude mcp reset-project-choices` makes it ask again. Where nobody can be asked,"
    " as with `claude -p`, enabledMcpjsonServers approves it"
)


_PLUGIN: Final = "agents/hook/opencode.js"
_OURS: Final = re.compile(rf'{NAME}[^"]* hook"|/{NAME}/{_PLUGIN}"')
_ASKS: Final = (
    "its plugin lets you answer its permissions and questions in agentwatch, in sessions begun from now on, and does"
    " nothing else; it is one short file, at the path above"
)

BY_HAND: Final = 1
BACKUP: Final = ".agentwatch.bak"
_SDK: Final = ("mcp", "mcp_types")
_LARGEST: Final = 4 * 1024 * 1024
_FILE_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755
_BEGIN: Final = "<!-- agentwatch: begin -->"
_END: Final = "<!-- agentwatch: end -->"  # Around what is ours in a Markdown file: nobody sees these when it is shown

_BLOCK: Final = re.compile(rf"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_WITH_GAP: Final = re.compile(rf"(?:\r?\n)*{_BLOCK.pattern}(?:\r?\n)?", re.DOTALL)
_INDENT: Final = re.compile(r"^([ \t]+)[\"\[{]", re.MULTILINE)


class Part(NamedTuple):
    """Something of ours in a JSON file: a member of an object, `path` with its key, or an entry of the array there."""

    path: tuple[str, ...]
    value: Any
    is_entry: bool = False


class Json(NamedTuple):
    """What goes into a JSON file of the workspace. `paths` are its possible names, the one to make last."""

    paths: tuple[str, ...]
    parts: tuple[Part, ...]


class ByHand(NamedTuple):
    """What only the operator can add: `lines`, to `place`, because of `why`."""

    place: str
    lines: str
    why: str


class Program(NamedTuple):
    """One agent program. It is there where one of `signs` is.

    `told` goes into its file `instructions`. `offers` are for the operator to take or to leave. `note` says what it
    does by itself.
    """

    name: str
    signs: tuple[str, ...]
    instructions: str
    files: tuple[Json, ...] = ()
    by_hand: tuple[ByHand, ...] = ()
    offers: tuple[ByHand, ...] = ()
    note: str = ""
    told: str = ""


class NotEditableError(ValueError):
    """A JSON file that is not written anew, and why."""


class Edit(NamedTuple):
    """One file, relative to the workspace. None stands for no file.

    `backup` is what lies beside it from before the first edit, as far as it does.
    """

    path: str
    before: str | None
    after: str | None
    backup: str | None


Step = Edit | ByHand
# Puts what is ours into a text, or with False takes it out. Raises NotEditableError.
Change = Callable[[str, bool], str]


def run(
    workspace: Path,
    agent: str | None,
    settings: Settings,
    *,
    write: bool,
    remove: bool,
    sources: Callable[[], Set[str]] = frozenset,
) -> int:
    """Set up the programs that are there, or the one that is named. Returns 0, or BY_HAND where something is left.

    `sources` gives the names of the readers that know a session of this workspace.
    """
    command = launcher()
    known = programs(command, settings)
    chosen = _recognised(workspace, known, sources()) if agent is None else [known[agent]]
    if not remove:
        say(f"this command starts agentwatch from any shell, until you move it: {command_line(command)}")
        if any(PathFinder.find_spec(name, command[-1].split(os.pathsep)) is None for name in _SDK):
            say(f"beware: the MCP server cannot start without its SDK; install that first: {install_line('mcp')}")
    # One after the other, as two of them may share a file.
    left = [program for program in chosen if _set_up(workspace, program, write=write, remove=remove)]
    if left:
        say(f"left for you: each step above that begins with `by hand`. Because of that the exit code is {BY_HAND}")
    return BY_HAND if left else 0


def _recognised(workspace: Path, known: Mapping[str, Program], read: Set[str]) -> list[Program]:
    named = [program for name, program in known.items() if name != "generic"]
    found = [one for one in named if one.name in read or any(os.path.exists(workspace / sign) for sign in one.signs)]
    if found:
        say(f"found: {', '.join(one.name for one in found)}")
        return found
    looked = "; ".join(f"{', '.join(one.signs)} ({one.name})" for one in named)
    say(
        f"no agent program is recognised here. Looked for, in this directory: {looked}; and for sessions that were"
        f" begun in it.\nIf you use one of these, name it with --agent ({', '.join(one.name for one in named)}). What"
        " follows serves any other program that reads AGENTS.md"
    )
    return [known["generic"]]


def _set_up(workspace: Path, program: Program, *, write: bool, remove: bool) -> bool:
    """Returns whether something is left to be done by hand."""

    def tell(words: str) -> None:
        say(f"{program.name}: {words}")

    steps = plan(workspace, program, remove=remove)
    edits = [step for step in steps if isinstance(step, Edit) and step.before != step.after]
    for step in steps:
        _show(step)
    if not edits:
        tell(f"nothing to {'remove' if remove else 'change'}")
    elif not write:
        tell("nothing is written yet; do it with --write")
    for edit in edits if write else ():
        try:
            _write(workspace, edit, keep_backup=not remove)
        except OSError as error:
            raise WorkspaceError(f"{edit.path}: cannot be written ({error}); what was written before stays") from error
        tell(f"{'removed from' if remove else 'written to'} {edit.path}")
    if not remove:
        for offer in program.offers:
            tell(f"you may add to {offer.place} ({offer.why}):")
            _show_lines(offer.lines)
        if program.note:
            tell(program.note)
    return any(isinstance(step, ByHand) for step in steps)


def _show(step: Step) -> None:
    if isinstance(step, ByHand):
        say(f"by hand, to {clean(step.place)} ({clean(step.why)}):")
        _show_lines(step.lines)
        return
    old, new = ("/dev/null" if text is None else step.path for text in (step.before, step.after))
    before, after = (step.before or "").splitlines(), (step.after or "").splitlines()
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        say(clean(line))


def _show_lines(text: str) -> None:
    for line in text.splitlines():
        say(f"    {clean(line)}")


def checks(workspace: Path, settings: Settings) -> Iterator[Check]:
    """The checks of `doctor` on files that `init` wrote: whether it would write the same now."""
    if (said := Journal(workspace).unanswered()) is not None:
        yield note("agents", f"an answer to a program did not get through at {said}")
    is_right: dict[str, bool] = {}
    for program in programs(launcher(), settings).values():
        both = zip(plan(workspace, program, remove=False), plan(workspace, program, remove=True), strict=False)
        for step, without in both:
            if isinstance(step, Edit) and isinstance(without, Edit) and without.before != without.after:
                is_right[step.path] = step.before == step.after and is_right.get(step.path, True)
    for path in (path for path, right in is_right.items() if not right):
        why = "what is there was written by hand, or by another agentwatch: other code may run in its place"
        yield bad("agents", f"{path}: {why}; `agentwatch init --write` mends it")
    if is_right and all(is_right.values()):
        yield good("agents", "what their configurations start is agentwatch, whatever lies in the workspace")
    if is_right.get(CLAUDE_SETTINGS):
        yield good("agents", "permissions and questions of Claude Code can be answered in agentwatch")


# Files


def plan(workspace: Path, program: Program, *, remove: bool) -> list[Step]:
    """The steps of setting a program up, or of removing what was set up."""
    changes: list[tuple[str, str, Change]] = [
        (program.instructions, program.told, partial(_change_block, program.told))
    ]
    for file in program.files:
        path = next((one for one in file.paths if os.path.exists(workspace / one)), file.paths[-1])
        change = partial(_change_json, file.parts)
        changes.append((path, change("", True), change))
    steps = [_step(workspace, *one, remove=remove) for one in changes]
    return steps if remove else [*steps, *program.by_hand]


def _step(workspace: Path, path: str, lines: str, change: Change, *, remove: bool) -> Step:
    """The edit of one file, or `lines` for a person where it cannot be edited."""
    try:
        text, backup = _read(workspace, path), _read(workspace, path + BACKUP)
        return Edit(path, text, _undone(text, backup, change) if remove else change(text or "", True), backup)
    except (UnicodeDecodeError, NotEditableError) as error:
        why = f"it cannot be edited safely: {error}"
    except OSError as error:
        why = f"it cannot be read, and nothing is written through links: {error}"
    return ByHand(path, lines, f"{why}; take this out of it" if remove else why)


def _undone(text: str | None, backup: str | None, change: Change) -> str | None:
    """The text of before: the very bytes, or no file, where nobody else has changed it since, else without ours."""
    if text is None:
        return None
    # A backup that has ours was made of the work of an older agentwatch.
    before = backup if backup is not None and change(backup, False) == backup else None
    return before if change(before or "", True) == text else change(text, False)


@contextmanager
def _directory_of(workspace: Path, path: str, *, make: bool = False) -> Iterator[tuple[Directory, str]]:
    """The directory of a file in the workspace, through no link, and the name in it. Raises OSError."""
    *parents, name = path.split("/")
    directory = Directory.open(workspace)
    for parent in parents:
        with directory as above:
            directory = above.child(parent, make=_DIRECTORY_MODE if make else None)
    with directory:
        yield directory, name


def _read(workspace: Path, path: str) -> str | None:
    with suppress(FileNotFoundError), _directory_of(workspace, path) as (directory, name):
        # Line ends are kept as they are.
        return directory.read(name, _LARGEST).decode()
    return None


def _write(workspace: Path, edit: Edit, *, keep_backup: bool) -> None:
    """Raises OSError."""
    with _directory_of(workspace, edit.path, make=True) as (directory, name):
        mode = _FILE_MODE if edit.before is None else directory.status(name).st_mode & 0o777
        if keep_backup and edit.before is not None and edit.backup is None:
            directory.publish(name + BACKUP, edit.before.encode(), mode)
        if edit.after is None:
            directory.remove(name)
        else:
            directory.replace(name, edit.after.encode(), mode)
        if not keep_backup and edit.backup is not None:
            directory.remove(name + BACKUP)


# Texts


def _change_block(block: str, text: str, put: bool) -> str:
    """The text with the block, where it was before, else at the end; or without it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not put:
        return _WITH_GAP.sub(lambda gap: newline if gap.start() else "", text, count=1)
    new = newline.join((_BEGIN, *block.strip().split("\n"), _END))
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: new, text, count=1)
    gap = newline * (2 - text.endswith("\n")) if text else ""
    return f"{text}{gap}{new}{newline}"


def _change_json(parts: Sequence[Part], text: str, put: bool) -> str:
    """The text with all parts, or without them; the same text where nothing is changed by that."""
    try:
        document = before = _as(dict, json.loads(text or "{}"))
    except json.JSONDecodeError as error:
        raise NotEditableError(f"line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise NotEditableError("it is too deep") from error
    for part in parts:
        document = _changed(document, part, put=put) or {}
    if document == before:
        return text
    # With the indent and the line ends of before.
    indent = _INDENT.search(text)
    new = json.dumps(document, indent=indent[1] if indent is not None else 2, ensure_ascii=False) + "\n"
    return new.replace("\n", "\r\n") if "\r\n" in text else new


def _changed(node: Any, part: Part, *, put: bool) -> Any:
    """A value with a part in it, in the place of an older one, or without it; None where it held nothing else."""
    changed: Any
    if part.path:
        key, *inner = part.path
        members = _as(dict, node)
        changed = members | {key: _changed(members.get(key), part._replace(path=tuple(inner)), put=put)}
        if changed[key] is None:
            del changed[key]
    elif not part.is_entry:
        return part.value if put else None
    else:
        entries, right = _as(list, node), [part.value] if put else []
        others = [entry for entry in entries if not _is_ours(entry)]
        changed = entries if list(filter(_is_ours, entries)) == right else others + right
    return node if changed == node else changed or None


def _as(kind: type[Any], value: Any) -> Any:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise NotEditableError(f"there is no {'object' if kind is dict else 'array'} where one is expected")
    return value


# The programs


def programs(command: Sequence[str], settings: Settings) -> dict[str, Program]:
    """All programs by name. `command` starts agentwatch; the time-outs follow from the settings."""
    server = {"command": command[0], "args": [*command[1:], "mcp"]}
    request = int(settings.mcp_wait) + _MCP_SLACK
    local = {"type": "local", "command": [*command, "mcp"], "enabled": True, "timeout": request * 1000}
    # JSON strings of plain words are TOML ones, too.
    toml = (
        f"[mcp_servers.{NAME}]\n"
        f"command = {json.dumps(command[0])}\n"
        f"args = {json.dumps([*command[1:], 'mcp'])}\n"
        f"env_vars = {json.dumps(['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'AGENTWATCH_PUBLIC_KEY'])}\n"
        f"tool_timeout_sec = {request}\n"
    )
    others = json.dumps({"mcpServers": {NAME: server}}, indent=2) + "\n"
    parts = (Part(("mcp", NAME), local), Part(("plugin",), _plugin(command), is_entry=True))
    everybody = (
        Program(
            "claude-code",
            (".claude", "CLAUDE.md", ".mcp.json"),
            "CLAUDE.md",
            (Json((".mcp.json",), (Part(("mcpServers", NAME), server),)), _claude_hooks(command, settings)),
            offers=(_claude_permissions(command),),
            note=_CLAUDE_ASKS,
        ),
        Program(
            "opencode",
            ("opencode.json", "opencode.jsonc", ".opencode"),
            "AGENTS.md",
            (Json(("opencode.jsonc", "opencode.json"), parts),),
            note=_ASKS,
        ),
        Program(
            "kilo",
            ("kilo.json", "kilo.jsonc", ".kilo", ".kilocode"),
            "AGENTS.md",
            (Json(("kilo.jsonc", "kilo.json", ".kilo/kilo.json", ".kilo/kilo.jsonc"), parts),),
            note=_ASKS,
        ),
        Program(
            "codex",
            (".codex",),
            "AGENTS.md",
            by_hand=(ByHand("~/.codex/config.toml", toml, "it lies outside of the workspace"),),
        ),
        Program(
            "generic",
            ("AGENTS.md",),
            "AGENTS.md",
            by_hand=(
                ByHand(
                    "the MCP settings of your program", others, f"if it has any; let it wait {request} s for a call"
                ),
            ),
        ),
    )
    told = _INSTRUCTIONS.replace("<agentwatch>", command_line(command))
    return {program.name: program._replace(told=told) for program in everybody}


def _claude_hooks(command: Sequence[str], settings: Settings) -> Json:
    call = {"type": "command", "command": command_line([*command, "hook"])}

    def part(on: str, waits: int, **about: str) -> Part:
        return Part(("hooks", on), about | {"hooks": [call | {"timeout": waits + HOOK_SLACK}]}, is_entry=True)

    back = part("PostToolUse", 0, matcher="Task|Agent")
    return Json((CLAUDE_SETTINGS,), (part("SubagentStop", int(settings.hook_wait)), back, part(ASKS, HELD_SECONDS)))


def _claude_permissions(command: Sequence[str]) -> ByHand:
    rules = [f"mcp__{NAME}", *(f"Bash({command_line([*command, face])}:*)" for face in ("wait", "claim", "check"))]
    return ByHand(
        ".claude/settings.local.json",
        json.dumps({"permissions": {"allow": rules}, "enabledMcpjsonServers": [NAME]}, indent=2) + "\n",
        "else it asks before each of these, and `claude -p`, which cannot ask, refuses them; never allow `decide`",
    )


def _plugin(command: Sequence[str]) -> list[Any]:
    """Our own file, and what it starts for each request: nothing is copied, so nothing gets old."""
    (main,) = (word for word in command if word.endswith("/__main__.py"))
    return [f"file://{quote(main.removesuffix('__main__.py'))}{_PLUGIN}", {"command": [*command, "hook", "--plugin"]}]


def _is_ours(entry: Any) -> bool:
    """Whether an entry is ours, or was before. A group of hooks to which the user has added is the user's."""
    calls = entry.get("hooks") if isinstance(entry, dict) else [entry]
    return isinstance(calls, list) and len(calls) == 1 and _OURS.search(json.dumps(calls)) is not None
