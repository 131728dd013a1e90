"""`agentwatch init`: prepares agent programs for agentwatch. It shows the changes of files, and makes or undoes them.

It rewrites only plain JSON and Markdown. For any other file, such as JSON with comments, it shows the operator the
lines to add.

The commands that it writes start Python with `-I -S`. Otherwise the current directory, a PYTHON* variable or a `.pth`
file could run somebody else's code. Instructions for agents contain these commands, so their words need no quotes.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from agentwatch.agents.hook.journal import last_unanswered
from agentwatch.composition import open_sessions
from agentwatch.config import Settings
from agentwatch.console import MUTED, Part, print_line
from agentwatch.disk import Directory
from agentwatch.errors import WorkspaceError
from agentwatch.shell import command_line, install_command, launch_words
from agentwatch.sources.claude_code import ASKS
from agentwatch.state import abbreviate_home
from agentwatch.text import Check, bad, clean, good, note, print_text
from agentwatch.view.words import plural

NAME = "agentwatch"
CLAUDE_SETTINGS = ".claude/settings.json"
# Claude Code kills a hook so many seconds after its wait should have ended. A killed hook would let the child go.
HOOK_SLACK = 30

HELD_SECONDS = 24 * 3600  # the longest time that a hook holds a request while the program shows its own prompt

_MCP_SLACK = 75  # the same for the tool `wait_for_decision`; without it, OpenCode and Kilo give up after 60 s

_INSTRUCTIONS = """\
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


_CLAUDE_ASKS = (
    "it starts the server of .mcp.json once you have approved it: a dialog asks when a session begins; say yes."
    " It asks before it uses one of the tools, too: say that it need not ask again, but never for `decide`. Where"
    " nobody can be asked, as with `claude -p`, enabledMcpjsonServers and a permission for mcp__agentwatch do that"
)


_PLUGIN = "agents/hook/opencode.js"
_OURS = re.compile(rf'{NAME}[^"]* hook"|/{NAME}/{_PLUGIN}"')
_ASKS = (
    "its plugin lets you answer its permissions and questions in agentwatch, in sessions begun from now on, and does"
    " nothing else; it is one short file, whose path stands in the configuration"
)

BY_HAND = 1
_STALE = "it does not start this agentwatch as it would be written now, so it may start other code, or nothing"
_SDK = ("mcp", "mcp_types")
_LARGEST = 4 * 1024 * 1024
# These comments surround the part of agentwatch in a Markdown file.
_BEGIN = "<!-- agentwatch: begin -->"
_END = "<!-- agentwatch: end -->"

_BLOCK = re.compile(rf"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_WITH_GAP = re.compile(rf"\n*{_BLOCK.pattern}\n?", re.DOTALL)
_INDENT = re.compile(r"^([ \t]+)[\"\[{]", re.MULTILINE)


class JsonEntries(NamedTuple):
    """The entries of agentwatch in a JSON file: members of objects with the key NAME, and elements of arrays.
    `paths` are the possible paths of the file. If no such file exists, the last path is used."""

    paths: tuple[str, ...]
    ours: Mapping[str, Any]


class ManualStep(NamedTuple):
    """Lines that the operator has to add to the file `place`. `why` says why `init` cannot add them."""

    place: str
    lines: str
    why: str


class Program(NamedTuple):
    """An agent program. A workspace with one of the files `signs` uses the program.

    The program reads the file `instructions`. `note` tells the operator how the program behaves.
    """

    name: str
    signs: tuple[str, ...]
    instructions: str
    files: tuple[JsonEntries, ...] = ()
    by_hand: tuple[ManualStep, ...] = ()
    note: str = ""


class NotEditableError(ValueError):
    """A JSON file cannot be rewritten. The message gives the reason."""


class Edit(NamedTuple):
    """The text of a file before and after a change. `path` is relative to the workspace. None means no file."""

    path: str
    before: str | None
    after: str | None


Step = Edit | ManualStep
# A function that puts the part of agentwatch into a text (True) or takes it out (False). Raises NotEditableError.
Change = Callable[[str, bool], str]


def set_up(
    workspace: Path,
    agent: str | None,
    settings: Settings,
    *,
    write: bool,
    remove: bool,
    confirm: Callable[[str], bool] | None = None,
) -> int:
    """Set up `agent`, or all agent programs of a workspace. Return BY_HAND if the user must do the rest, or else 0.

    With `confirm`, list the files, and write them after a yes. Without `confirm`, show each changed line.
    """
    command, known = launch_words(), known_programs(settings)
    chosen = [known[agent]] if agent else _find_programs(workspace, known, settings)
    if not remove:
        print_text(f"this command starts agentwatch from any shell, until you move it: {command_line(command)}")
        if not all(PathFinder.find_spec(name, command[-1].split(os.pathsep)) for name in _SDK):
            install = install_command("mcp")
            print_text(f"beware: the MCP server cannot start without its SDK; install that first: {install}")
    if confirm:
        steps = {step.path: step for one in chosen for step in _changes(plan_steps(workspace, one, remove=remove))}
        if steps:
            print_text(f"agentwatch init {'takes out' if remove else 'writes'} what is its own, and keeps all else:")
            for step in steps.values():
                print_line(*_summary_of(step))
            write = confirm(f"{'Change' if remove else 'Write'} {plural(len(steps), 'file')}?")
            if not write:
                flag = " --remove" if remove else ""
                print_text(f"nothing is written; `agentwatch init{flag} | less` shows each line")
                return BY_HAND
    # Plan one program after the other, because two programs may share a file.
    left = [_set_up_one(workspace, program, write=write, remove=remove, shows=confirm is None) for program in chosen]
    return BY_HAND if any(left) else 0


def _changes(steps: Iterable[Step]) -> list[Edit]:
    return [step for step in steps if isinstance(step, Edit) and step.before != step.after]


def _summary_of(edit: Edit) -> list[Part | str]:
    """Return a line for the screen: the name of a file, and how many lines an edit adds and removes."""
    before, after = ((text or "").splitlines() for text in edit[1:])
    lines = [line[0] for line in difflib.ndiff(before, after) if line[0] in "+-"]
    became = "new" if edit.before is None else "removed" if edit.after is None else "changed"
    counts = ", ".join(f"{sign}{lines.count(sign)}" for sign in "+-" if sign in lines)
    return [f"  {clean(edit.path):<24} ", (f"{became}, {counts} lines", MUTED)]


def _find_programs(workspace: Path, known: Mapping[str, Program], settings: Settings) -> list[Program]:
    """Find the programs that have files or sessions in the workspace. If there are none, return the generic program."""
    read = set[str]()
    if settings.sessions:
        with closing(open_sessions(workspace)) as source:
            source.scan()
            read = {one.source for one in source.found() if one.sessions}
    named = [program for name, program in known.items() if name != "generic"]
    found = [one for one in named if one.name in read or any(os.path.exists(workspace / sign) for sign in one.signs)]
    if found:
        print_text(f"found: {', '.join(one.name for one in found)}")
        return found
    print_line(
        "no agent program is recognised here, by its files or its sessions. If you use one of these, name it with"
        f" --agent ({', '.join(one.name for one in named)}). This serves any other program that reads AGENTS.md"
    )
    return [known["generic"]]


def _set_up_one(workspace: Path, program: Program, *, write: bool, remove: bool, shows: bool) -> bool:
    """Set up one program, or remove its set-up. Tell whether the operator has to do the rest by hand."""
    name, steps = program.name, plan_steps(workspace, program, remove=remove)
    edits = _changes(steps)
    by_hand = [step for step in steps if isinstance(step, ManualStep)]
    for edit in edits if shows else ():
        old, new = ("/dev/null" if text is None else edit.path for text in edit[1:])
        before, after = ((text or "").splitlines() for text in edit[1:])
        for line in difflib.unified_diff(before, after, old, new, lineterm=""):
            print_text(clean(line))
    for step in by_hand:
        print_line(clean(f"by hand, to {step.place} ({step.why}):"))
        for line in step.lines.splitlines():
            print_text(f"    {clean(line)}")
    if not edits:
        print_text(f"{name}: nothing to {'remove' if remove else 'change'}")
    elif not write:
        print_text(f"{name}: nothing is written yet; do it with --write")
    for edit in edits if write else ():
        try:
            _write(workspace, edit)
        except OSError as error:
            raise WorkspaceError(f"{edit.path}: cannot be written ({error}); what was written before stays") from error
        print_text(f"{name}: {'removed from' if remove else 'written to'} {edit.path}")
    if program.note and not remove:
        print_line(f"{name}: {program.note}")
    return bool(by_hand)


def check_setup(workspace: Path, settings: Settings) -> Iterator[Check]:
    """Yield checks for `agentwatch doctor`: are the files that `init` wrote still up to date?"""
    if said := last_unanswered(workspace):
        yield note("agents", f"an answer to a program did not get through at {said}")
    known = known_programs(settings)
    steps = [step for one in known.values() for step in plan_steps(workspace, one, remove=False)]
    edits = {step.path: step for step in steps if isinstance(step, Edit) and NAME in (step.before or "")}
    is_right = dict[str, bool]()
    for path, edit in edits.items():
        if not path.endswith(".md"):
            is_right[path] = edit.before == edit.after
            if not is_right[path]:
                yield bad("agents", f"{path}: {_STALE}; `agentwatch init` mends it")
        elif _BEGIN in (edit.before or "") and edit.before != edit.after:
            # Old instructions start no program. They are harmless, so this is only a note.
            yield note("agents", f"{path}: its block is of another version; `agentwatch init` renews it")
    if is_right and all(is_right.values()):
        yield good("agents", "what their configurations start is agentwatch, whatever lies in the workspace")
    if is_right.get(CLAUDE_SETTINGS):
        yield good("agents", "permissions and questions of Claude Code can be answered in agentwatch")
    yield from _check_codex(known["codex"].by_hand[0].lines)


def _check_codex(lines: str) -> Iterator[Check]:
    """Yield a bad check if the entry in Codex's own configuration is out of date."""
    import tomllib

    place = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
    with suppress(OSError, ValueError, RuntimeError, KeyError, TypeError):
        there, ours = (tomllib.loads(text)["mcp_servers"][NAME] for text in (place.read_text("utf-8"), lines))
        if there != {**there, **{key: ours[key] for key in ("command", "args")}}:
            command = "`agentwatch init --agent codex` shows what belongs there"
            yield bad("agents", f"{abbreviate_home(str(place))}: {_STALE}; {command}")


# Files


def plan_steps(workspace: Path, program: Program, *, remove: bool) -> list[Step]:
    """Return the steps that set up a program. With `remove`, return the steps that remove the set-up."""
    instructions = _INSTRUCTIONS.replace("<agentwatch>", command_line(launch_words()))
    changes = [(program.instructions, instructions, partial(_change_block, instructions))]
    for file in program.files:
        path = next((one for one in file.paths if os.path.exists(workspace / one)), file.paths[-1])
        change = partial(_change_json, file.ours)
        changes.append((path, change("", True), change))
    steps = [_plan_edit(workspace, *one, put=not remove) for one in changes]
    return steps if remove else [*steps, *program.by_hand]


def _plan_edit(workspace: Path, path: str, lines: str, change: Change, *, put: bool) -> Step:
    """Return the edit of one file. If the file cannot be edited, return `lines` for the operator to add."""
    before = None
    try:
        with suppress(FileNotFoundError), _open_directory_of(workspace, path) as (directory, name):
            before = directory.read(name, _LARGEST).decode()
        # Remove a file that has nothing but the part of agentwatch.
        after = change(before or "", put) or None
        return Edit(path, before, before if after is None and not before else after)
    except (UnicodeDecodeError, NotEditableError) as error:
        why = f"it cannot be edited safely: {error}"
    except OSError as error:
        why = f"it cannot be read, and nothing is written through links: {error}"
    return ManualStep(path, lines, why if put else f"{why}; take this out of it")


@contextmanager
def _open_directory_of(workspace: Path, path: str, *, make: bool = False) -> Iterator[tuple[Directory, str]]:
    """Open the directory of a file. Yield it and the file's name. Raise OSError if one of the directories is a link."""
    *parents, name = path.split("/")
    directory = Directory.open(workspace)
    for parent in parents:
        with directory as above:
            directory = above.open_child(parent, make=0o755 if make else None)
    with directory:
        yield directory, name


def _write(workspace: Path, edit: Edit) -> None:
    with _open_directory_of(workspace, edit.path, make=True) as (directory, name):
        if edit.after is None:
            directory.remove(name)
        else:
            mode = 0o644 if edit.before is None else directory.status(name).st_mode & 0o777
            directory.replace(name, edit.after.encode(), mode)


# Texts


def _change_block(block: str, text: str, put: bool) -> str:
    """Put the block into a text, in its old place or at the end. If not `put`, take the block out."""
    if not put:
        return _WITH_GAP.sub(lambda gap: "\n" if gap.start() else "", text, count=1)
    new = f"{_BEGIN}\n{block.strip()}\n{_END}"
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: new, text, count=1)
    gap = "\n" * (2 - text.endswith("\n")) if text else ""
    return f"{text}{gap}{new}\n"


def _change_json(ours: Mapping[str, Any], text: str, put: bool) -> str:
    """Put the entries `ours` into a JSON text. If not `put`, take them out, and return "" if nothing is left."""
    try:
        before = _require_kind(dict, json.loads(text or "{}"))
    except json.JSONDecodeError as error:
        raise NotEditableError(f"line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise NotEditableError("it is too deep") from error
    document = _merge(before, ours, put=put)
    if document == before:
        return text
    indent = _INDENT.search(text)
    new = json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False)
    return f"{new}\n" if document else ""


def _merge(node: Any, ours: Any, *, put: bool) -> Any:
    """Put `ours` into a JSON value, in place of agentwatch's older entries. If not `put`, just remove the old ones."""
    if isinstance(ours, list):
        entries = _require_kind(list, node)
        others = [entry for entry in entries if not _is_ours(entry)]
        is_right = put and [entry for entry in entries if _is_ours(entry)] == ours
        return entries if is_right else [*others, *(ours if put else ())]
    members = dict(_require_kind(dict, node))
    for key, value in ours.items():
        members[key] = (put and value) if key == NAME else _merge(members.get(key), value, put=put)
        if not members[key]:
            del members[key]
    return members


def _require_kind(kind: type[Any], value: Any) -> Any:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise NotEditableError(f"there is no {'object' if kind is dict else 'array'} where one is expected")
    return value


# The programs


def known_programs(settings: Settings) -> dict[str, Program]:
    """Return all programs by name. The settings determine the time-outs."""
    command, agents = launch_words(), "AGENTS.md"
    request = int(settings.mcp_wait) + _MCP_SLACK
    mcp = {"mcpServers": {NAME: {"command": command[0], "args": [*command[1:], "mcp"]}}}
    local = {"type": "local", "command": [*command, "mcp"], "enabled": True, "timeout": request * 1000}
    (main,) = (word for word in command if word.endswith("/__main__.py"))
    # Refer to the plugin in this package instead of a copy, which could get out of date.
    place = f"file://{quote(main.removesuffix('__main__.py'))}{_PLUGIN}"
    ours = {"mcp": {NAME: local}, "plugin": [[place, {"command": [*command, "hook", "--plugin"]}]]}
    call = {"type": "command", "command": command_line([*command, "hook"])}

    def hook_group(seconds: int, **about: str) -> list[dict[str, Any]]:
        return [about | {"hooks": [call | {"timeout": seconds + HOOK_SLACK}]}]

    hooks = {
        "SubagentStop": hook_group(int(settings.hook_wait)),
        "PostToolUse": hook_group(0, matcher="Task|Agent"),
        ASKS: hook_group(HELD_SECONDS),
    }
    # A JSON string of plain words is a valid TOML string.
    toml = (
        f"[mcp_servers.{NAME}]\n"
        f"command = {json.dumps(command[0])}\n"
        f"args = {json.dumps([*command[1:], 'mcp'])}\n"
        f"env_vars = {json.dumps(['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'AGENTWATCH_PUBLIC_KEY'])}\n"
        f"tool_timeout_sec = {request}\n"
    )
    codex = ManualStep("~/.codex/config.toml", toml, "it lies outside of the workspace")
    other = ManualStep(
        "the MCP settings of your program",
        json.dumps(mcp, indent=2),
        f"if it has any; let it wait {request} s for a call",
    )
    kilo = ("kilo.jsonc", "kilo.json", ".kilo/kilo.json", ".kilo/kilo.jsonc")
    everybody = (
        Program(
            "claude-code",
            (".claude", "CLAUDE.md", ".mcp.json"),
            "CLAUDE.md",
            (JsonEntries((".mcp.json",), mcp), JsonEntries((CLAUDE_SETTINGS,), {"hooks": hooks})),
            note=_CLAUDE_ASKS,
        ),
        Program(
            "opencode",
            ("opencode.json", "opencode.jsonc", ".opencode"),
            agents,
            (JsonEntries(("opencode.jsonc", "opencode.json"), ours),),
            note=_ASKS,
        ),
        Program("kilo", (*kilo[:2], ".kilo", ".kilocode"), agents, (JsonEntries(kilo, ours),), note=_ASKS),
        Program("codex", (".codex",), agents, by_hand=(codex,)),
        Program("generic", (agents,), agents, by_hand=(other,)),
    )
    return {program.name: program for program in everybody}


def _is_ours(entry: Any) -> bool:
    """Tell whether `init` wrote an entry. An entry to which the user has added a hook belongs to the user."""
    calls = entry.get("hooks") if isinstance(entry, dict) else [entry]
    return isinstance(calls, list) and len(calls) == 1 and bool(_OURS.search(json.dumps(calls)))
