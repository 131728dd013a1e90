"""The agent programs that `init` knows: how each is recognised, and what it has to be told, with its limits.

The commands name an interpreter with `-I -S`, our file, and where the packages lie. Otherwise the current directory, a
PYTHON* variable or a `.pth` file could run somebody else's code. The words need no quotes: agents' rules hold them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from agentwatch.config import Settings
from agentwatch.shell import command_line
from agentwatch.sources.claude_code.hooks import ASKS

NAME: Final = "agentwatch"
CLAUDE_SETTINGS: Final = ".claude/settings.json"
HOOK_SLACK: Final = 30
"""Seconds that a hook has beside its waiting, before the program ends it: that would let the child go unsaid."""

HELD_SECONDS: Final = 24 * 3600
"""The longest that a request is held whose prompt stands in the program meanwhile."""

_MCP_SLACK: Final = 75
"""The same for `wait_for_decision`; OpenCode and Kilo would end it after 60 s."""

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
_ASKS: Final = (
    "its plugin lets you answer its permissions and questions in agentwatch, in sessions begun from now on, and does"
    " nothing else; it is one short file, at the path above"
)


class Part(NamedTuple):
    """Something of ours in a JSON file: a member of an object, `path` with its key. Or an entry of the array there:
    `is_ours` knows it, also one of before."""

    path: tuple[str, ...]
    value: Any
    is_ours: Callable[[Any], bool] | None = None


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

    `told` goes into its file `instructions`. `offers` are for the operator to take or to leave. `notes` say which of
    its limits were heeded, and what it does by itself.
    """

    name: str
    signs: tuple[str, ...]
    instructions: str
    files: tuple[Json, ...] = ()
    by_hand: tuple[ByHand, ...] = ()
    offers: tuple[ByHand, ...] = ()
    notes: tuple[str, ...] = ()
    told: str = ""


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
    parts = (Part(("mcp", NAME), local), Part(("plugin",), _plugin(command), _is_our_plugin))
    needs_timeout = f"mcp.{NAME}.timeout is {request} s: without it, calls fail after 60 s"
    everybody = (
        Program(
            "claude-code",
            (".claude", "CLAUDE.md", ".mcp.json"),
            "CLAUDE.md",
            (Json((".mcp.json",), (Part(("mcpServers", NAME), server),)), _claude_hooks(command, settings)),
            offers=(_claude_permissions(command),),
            notes=(
                "each hook has more time than it waits, so Claude Code lets no child go because the time is up",
                _CLAUDE_ASKS,
            ),
        ),
        Program(
            "opencode",
            ("opencode.json", "opencode.jsonc", ".opencode"),
            "AGENTS.md",
            (Json(("opencode.jsonc", "opencode.json"), parts),),
            notes=(needs_timeout, _ASKS),
        ),
        Program(
            "kilo",
            ("kilo.json", "kilo.jsonc", ".kilo", ".kilocode"),
            "AGENTS.md",
            (Json(("kilo.jsonc", "kilo.json", ".kilo/kilo.json", ".kilo/kilo.jsonc"), parts),),
            notes=(needs_timeout, _ASKS),
        ),
        Program(
            "codex",
            (".codex",),
            "AGENTS.md",
            by_hand=(ByHand("~/.codex/config.toml", toml, "it lies outside of the workspace"),),
            notes=("its shell gives back after 10 to 30 s and asks on; pending means: call again",),
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
    stop = {"hooks": [call | {"timeout": int(settings.hook_wait) + HOOK_SLACK}]}
    back = {"matcher": "Task|Agent", "hooks": [call | {"timeout": HOOK_SLACK}]}
    asks = {"hooks": [call | {"timeout": HELD_SECONDS + HOOK_SLACK}]}
    events = {"SubagentStop": stop, "PostToolUse": back, ASKS: asks}
    return Json(
        (".claude/settings.json",), tuple(Part(("hooks", on), at, _calls_our_hook) for on, at in events.items())
    )


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


def _is_our_plugin(entry: Any) -> bool:
    place = entry[0] if isinstance(entry, list) and entry else entry
    return isinstance(place, str) and place.endswith(f"/{NAME}/{_PLUGIN}")


def _calls_our_hook(entry: Any) -> bool:
    """Whether a group of hooks has ours and no other: one that the user has added to is the user's."""
    calls = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(calls, list) or len(calls) != 1 or not isinstance(calls[0], dict):
        return False
    words = str(calls[0].get("command", "")).split()
    return words[-1:] == ["hook"] and any(NAME in word for word in words)
