"""What an empty workspace shows: what is looked for, where, and how to see the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.widgets import Static

from agentwatch.app.widgets.cells import shown

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_LOOKS_FOR: Final = (
    ("handoff packet", "Markdown that begins with the fenced packet, and its todos", "*.handoff.md, *.todos.md"),
    ("return-format", "Markdown whose first section is “## Status”", "*.return.md"),
    ("subagent-return", "JSON with status, summary, artifacts, metadata", "*.return.json"),
    ("return-meta", "its dialect in a task's directory", ".return-meta.json"),
    ("report-contract", "JSON reports with findings", "*.report.json"),
)

_MOST_PROBLEMS: Final = 5
_WIDE: Final = 100
"""Columns of screen from which the list says what each format is."""


class Empty(Static):
    """Shown in place of the tree while there is no task."""

    DEFAULT_CSS = """
    Empty { height: 1fr; width: 1fr; padding: 1 2; background: $background; color: $foreground; }
    """

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(markup=False)
        self._monitor = monitor
        self._said: tuple[object, ...] | None = None

    def refresh_text(self) -> None:
        """Say it for the present state of the monitor and the present width."""
        wide = self.app.size.width >= _WIDE
        mode, detail, problems = (health := self._monitor.health).mode, health.detail, health.problems
        if self._said == (mode, detail, wide, problems):
            return
        self._said = (mode, detail, wide, problems)
        if mode == "replay":
            self.update(Content.styled("There was no delegation at this moment of the recording.", "bold"))
            return
        watched = shown(self._monitor.watched, 500)
        if mode == "starting":
            looking = Content.assemble(("Looking through ", "bold"), (watched, "bold"), " …")
            self.update(Content("\n\n").join((looking, Content.styled(shown(detail, 300), "$text-muted"))))
            return
        lines = [
            Content.styled("No delegation here yet." if not problems else "No delegation can be seen.", "bold"),
            *(Content.styled(shown(str(one), 300), "$text-warning") for one in problems[:_MOST_PROBLEMS]),
            Content(""),
            Content.assemble(("Watched  ", "$text-muted"), watched),
            Content.assemble(("Demo     ", "$text-muted"), ("agentwatch demo", "bold $accent")),
            Content.assemble(
                ("Set up   ", "$text-muted"),
                ("agentwatch init", "bold $accent"),
                ("  has your agent hand off, return and wait for you", "$text-muted"),
            ),
            Content(""),
            Content(
                "A task appears as soon as Claude Code, OpenCode, Kilo Code, Codex, Qwen Code, Copilot CLI, Gemini"
                " CLI, Roo Code or a team in .agents/ hands work on here (agentwatch sources lists what was found), or"
                " an agent writes one of these, in any .md or .json file:"
            ),
            Content(""),
        ]
        for name, words, examples in _LOOKS_FOR:
            about = [(f"{words:<60}", "$text-muted")] if wide else []
            lines.append(Content.assemble(f"  {name:<17}", *about, (examples, "$text-muted")))
        self.update(Content("\n").join(lines))
