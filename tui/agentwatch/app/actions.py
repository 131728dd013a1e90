"""The table of all actions that have keys. Key bindings, footer, help, palette and manual are made from this table."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import permutations
from typing import NamedTuple

from textual.binding import Binding, BindingType

from agentwatch.arguments import did_you_mean
from agentwatch.config import locate_setting
from agentwatch.text import quote_text


class Home(StrEnum):
    """The part of the program that binds an action's keys: the app, a screen, or a widget.

    REPLAY is the app that plays a recording. Its keys take precedence over the keys of the tree.
    """

    APP = "app"
    MAIN = "main"
    INSPECT = "inspect"
    PANE = "pane"
    LINES = "lines"
    TREE = "tree"
    FILTER = "filter"
    TIMELINE = "timeline"
    CHART = "chart"
    DECIDE = "decide"
    REPLAY = "replay"


class Place(StrEnum):
    """A part of the screen that can have the focus. The footer then lists the keys of this part."""

    TREE = "tree"
    DETAILS = "details"
    INSPECT = "inspect"
    FILTER = "filter"
    EMPTY = "empty"
    TIMELINE = "timeline"
    DECIDE = "decide"


class ActionSpec(NamedTuple):
    """One action of the screen, with its keys.

    `keys` are Textual's key names. `action` is Textual's action string. It may contain `{}` for the number of the
    pressed key, from 0 on. `footer` has the places whose footer shows `words`. If `words` has a semicolon, the tree's
    footer shows the part after it. The `flag` "acts" marks an action that needs the workspace or its agents. A replay
    leaves out these actions. With the flag "first", the keys take precedence over the keys of the focused widget. In a
    dialog or a replay, all keys take precedence, except keys with the flag "late".
    """

    id: str
    keys: tuple[str, ...]
    action: str
    words: str
    homes: tuple[Home, ...]
    footer: tuple[Place, ...]
    flag: str

    @property
    def tooltip(self) -> str:
        """The sentence that help and palette show."""
        return next(some[self.id] for some in HELP.values() if self.id in some)

    @property
    def is_numbered(self) -> bool:
        """Whether the action takes the number of the pressed key."""
        return "{}" in self.action

    @property
    def needs_workspace(self) -> bool:
        """Whether the action needs the workspace or its agents."""
        return self.flag == "acts"

    @property
    def has_priority(self) -> bool:
        """Whether the action's keys take precedence over the keys of the focused widget."""
        return self.flag == "first" or (self.homes[0] in (Home.DECIDE, Home.REPLAY) and self.flag != "late")

    @property
    def key_label(self) -> str:
        """The first key as people write it, or a range such as `1–9` if the action is numbered."""
        first = key_label(self.keys[0])
        return f"{first}–{key_label(self.keys[-1])}" if self.is_numbered else first

    @property
    def keys_label(self) -> str:
        """All keys as people write them."""
        return self.key_label if self.is_numbered else " ".join(map(key_label, self.keys))


_SHORT = "escape=esc pageup=pgup pagedown=pgdn comma=, shift+tab=⇧tab up=↑ down=↓ left=← right=→"
_KEY_LABELS = dict(one.split("=") for one in _SHORT.split())


def key_label(key: str) -> str:
    """Return a key as people write it: `^p`, `esc`, `↑`."""
    return _KEY_LABELS.get(key) or key.replace("ctrl+", "^")


# Columns: id, keys, action, words, flag, homes, footer. `selected` stands for all places that have a selected task.
# A footer lists its actions in the order of these rows. A narrow footer leaves out the last actions.
_ROWS = """
filter.done       | enter       | done               | keep        |       | filter   | filter
filter.drop       | escape      | drop               | clear       |       | filter   | filter
filter.down       | down        | down               | to the tree |       | filter   | filter
filter.complete   | tab         | complete           | complete    |       | filter   | filter
filter.earlier    | up          | earlier            | earlier     |       | filter   | filter
back              | escape      | back               | back; clear the filter |       | main timeline inspect | selected
open              | enter       | open               | open        |       | tree     | tree
inspect           | enter       | inspect            | inspect     | acts  | pane     | details
live.search       | /           | search             | search      |       | pane     | details
live.pager        | p           | page_transcript    | pager       | acts  | pane     | details
tabs              | 1 2 3 4 5 6 7 8 | tab({})            | tabs        |       | main     | details
details.widen     | z           | widen              | whole width |       | main     | details
inspect.switch    | d tab       | switch             | difference  |       | inspect  | inspect
compare.earlier   | -           | compare(-1)        | earlier     |       | pane     | details
compare.later     | + =         | compare(1)         | later attempts |       | pane     | details
needs.next        | n           | go_asking(1)       | next        |       | main     | tree details
needs.previous    | N           | go_asking(-1)      | previous    |       | main     |
unseen.next       | u           | go_unseen(1)       | new         |       | main     | tree details
unseen.previous   | U           | go_unseen(-1)      | previous new |       | main     |
decide.retry      | r           | decide('retry')    | retry       | acts  | app      | selected
decide.escalate   | e           | decide('escalate') | escalate    | acts  | app      | selected
decide.abort      | x           | decide('abort')    | abort       | acts  | app      | selected
decide.respond    | a           | decide('respond')  | answer      | acts  | app      | selected
decide.accept     | y           | decide('accept')   | accept      | acts  | app      | selected
review            | R           | review             | review      | acts  | app      | selected
mark              | m           | mark               | mark        | acts  | tree     |
acknowledge       | A           | aside('acknowledge') | acknowledge | acts  | app      | tree details
snooze            | w           | aside('snooze')    | snooze      | acts  | app      |
aside.undo        | Z           | aside('undo')      | undo        | acts  | app      |
dialog.record     | ctrl+s      | record             | record      |       | decide   | decide
dialog.leave      | escape      | leave              | leave       |       | decide   | decide
dialog.break      | ctrl+c      | copy_or_leave      | leave       | late  | decide   |
dialog.skip       | ctrl+n      | skip               | skip        |       | decide   | decide
dialog.instead    | f2 f3 f4 f5 f6 | instead({})        | otherwise   |       | decide   | decide
dialog.next       | tab         | app.focus_next     | next        |       | decide   | decide
dialog.previous   | shift+tab   | app.focus_previous | previous    |       | decide   |
dialog.edit       | ctrl+e      | edit_document      | editor      |       | decide   | decide
dialog.changes    | ctrl+t      | changes            | changes     |       | decide   | decide
timeline.open     | enter       | open               | tree        |       | timeline | timeline
timeline.in       | + =         | zoom(1)            | zoom in     |       | chart    | timeline
timeline.out      | - _         | zoom(-1)           | out         |       | chart    | timeline
timeline.fit      | 0           | fit                | all         |       | chart    | timeline
timeline.now      | n           | now                | now         |       | chart    | timeline
timeline.show     | z           | show               | this task   |       | chart    | timeline
timeline.earlier  | left h      | pan(-1)            | earlier     |       | chart    | timeline
timeline.later    | right l     | pan(1)             | later       |       | chart    | timeline
timeline.idle     | i           | fold_idle          | fold idle time |       | chart    | timeline
filter            | /           | filter             | filter      |       | main     | tree
views             | 1 2 3 4 5 6 7 8 9 | screen.view({})    | views       |       | tree     | tree
filter.state      | s           | filter_state(1)    | state       |       | main     | tree
filter.state.back | S           | filter_state(-1)   | previous state |       | main     |
follow            | f           | follow             | follow      |       | main     | tree
timeline          | t           | timeline           | timeline    |       | main timeline | tree
history           | H           | history            | history     |       | main     |
fold              | space       | toggle_fold        | fold        |       | tree chart | tree
edit              | o           | file('edit')       | edit        | acts  | app      | selected
copy              | c           | file('copy')       | copy path   | acts  | app      | selected
tab.next          | right l     | next_tab(1)        | next tab    |       | pane     |
tab.previous      | left h      | next_tab(-1)       | previous tab |       | pane     |
focus.next        | tab         | switch             | switch      |       | main     | tree details
focus.previous    | shift+tab   | switch             | switch      |       | main     |
fold.none         | E           | fold_all(False)    | expand all  |       | tree chart | tree
fold.all          | C           | fold_all(True)     | collapse all |       | tree chart | tree
up                | up k        | move_by(-1)        | up          |       | tree chart lines |
down              | down j      | move_by(1)         | down        |       | tree chart lines |
left              | left h      | cursor_left        | out         |       | tree     |
right             | right l     | cursor_right       | in          |       | tree     |
page.up           | pageup ctrl+u | move_pages(-1)     | page up     |       | tree chart lines |
page.down         | pagedown ctrl+d | move_pages(1)      | page down   |       | tree chart lines |
page.on           | space       | move_pages(1)      | page down   |       | lines    |
first             | home g      | first_line         | first       |       | tree chart lines |
last              | end G       | last_line          | last        |       | tree chart lines |
notices           | !           | notices            | notices     |       | main     | empty
replay.play       | space       | play               | play        |       | replay   |
replay.step       | .           | step(1)            | step        |       | replay   |
replay.step.back  | comma       | step(-1)           | back        |       | replay   |
replay.slower     | <           | change_speed(0.5)  | slower      |       | replay   |
replay.faster     | >           | change_speed(2.0)  | faster      |       | replay   |
replay.start      | [           | rewind             | start       |       | replay   |
replay.end        | ]           | wind               | end         |       | replay   |
connect           | O           | connect            | connect     |       | app      |
help              | ?           | help               | keys        |       | app      | selected empty
palette           | ctrl+p      | command_palette    | palette     | first | app      |
quit              | q ctrl+c    | quit               | quit        |       | app      | tree details empty inspect
suspend           | ctrl+z      | suspend_process    | shell       | first | app      | tree details empty inspect"""


def _parse_rows() -> Iterator[ActionSpec]:
    for line in _ROWS.strip().split("\n"):
        name, keys, action, words, flag, homes, footer = (cell.strip() for cell in line.split("|"))
        places = footer.replace("selected", "tree details timeline inspect").split()
        yield ActionSpec(
            name, tuple(keys.split()), action, words, tuple(map(Home, homes.split())), tuple(map(Place, places)), flag
        )


COMMANDS = {one.id: one for one in _parse_rows()}  # all actions by id

_HELP = """Look
back              Go back from the details or the timeline to the tree. In the tree, clear the filter.
open              Open the details of the selected task.
needs.next        Go to the next task that needs you, first to a request that you have not looked at.
needs.previous    Go to the previous task that needs you.
unseen.next       Go to the next new task, the newest first. New means: ended, failed or changed since you looked at it.
unseen.previous   Go to the previous new task.
follow            Follow the changes: the cursor goes to each task that changes. Such a task stays new. Move the cursor
                  to end this.
timeline          Show all tasks over time: who works and who waits. In the timeline, go back to the tree.
notices           List the files that could not be read, or that belong to no task.
connect           Connect now to the machines that cannot be reached, before the next try is due.

Decide
decide.retry      Retry the selected task, with an amended handoff.
decide.escalate   Give the selected task to another mode; a line fault goes to the fitter.
decide.abort      Abort the selected task and what is below it, with a final error report.
decide.respond    Answer the question of the selected task or of its program. If it has none, answer the most urgent
                  request of any task.
decide.accept     Accept a return as it is, and say why. It may be partial or invalid, have a false claim, or ask for a
                  review.
review            Decide about the marked tasks, one after another. Without marks: about all tasks that need you, and
                  all requests.
mark              Mark the selected task for the review, or take the mark away.

Put aside
acknowledge       Acknowledge the selected task with those below it, the selected group, or all tasks that the filter
                  finds. They ask nothing until they change, and are no longer new. This approves nothing and reaches no
                  agent.
snooze            Snooze the selected task: it asks later, in half an hour, tomorrow, or when it changes.
aside.undo        Take back what you acknowledged or snoozed last. Press it again to take back the one before.

In a decision
dialog.record     Record the decision. Nothing else records it: no click, and no other key.
dialog.leave      Leave without a decision. This also ends a review.
dialog.break      Leave without a decision, too. If text is selected, copy it and stay.
dialog.skip       In a review: go on to the next task, and leave this one undecided.
dialog.instead    Change to another decision about the same task. The order is: retry, escalate, abort, answer, accept.
dialog.next       Go to the next field. Arrow keys choose in it.
dialog.previous   Go to the field before.
dialog.edit       Open the handoff, or the report, in your editor.
dialog.changes    Show your changes to the last handoff, or go on editing.

Move
focus.next        Go from the tree to the details and back.
focus.previous    Go from the details to the tree and back.
up                Go up one row.
down              Go down one row.
page.up           Go up one page.
page.down         Go down one page.
first             Go to the first row.
last              Go to the last row.

Fold
fold              Fold or unfold the selected task.
fold.none         Expand everything.
fold.all          Collapse everything.
left              Fold the task. If it is folded, go to its parent.
right             Unfold the task. If it is unfolded, go to its first child.

Find
filter            Show only the tasks that match: words of id, title, agent or objective, and terms such as
                  `state:failed`. The manual's topic `find` has all terms.
views             Show one of the views in your settings, or everything again. A number without a view opens a tab of
                  the details.
filter.state      Show only tasks in one state. Each press goes on to the next state.
filter.state.back Go back to the state before.
history           Open the history (tasks from before you first watched), and go to it.

In the details
inspect           Look at the file of the selected claim, or at the command behind it. In Live, read the whole entry.
live.search       In Live, even if it is beside the tree: show only the entries that contain some words. `esc` shows all
                  again.
live.pager        In Live: open the whole transcript in your `$PAGER`.
tabs              Go to a tab of the details.
details.widen     Give the details the whole width, or show the tree beside them again.
inspect.switch    Switch between the file of a claim and its git diff since the handoff.
compare.earlier   Compare earlier attempts.
compare.later     Compare later attempts.
tab.next          Go to the next tab.
tab.previous      Go to the tab before.
page.on           Go down one page.

In the filter line
filter.done       Keep the filter and go back to the tree.
filter.drop       Clear the filter and go back to the tree.
filter.down       Keep the filter and go on in the tree.
filter.complete   Complete a key or a value, as `→` does. If there is nothing to complete, go to the tree.
filter.earlier    In an empty field: bring back the filter that you kept last, and then those before it.

In the timeline
timeline.open     Go to the selected task in the tree.
timeline.in       Zoom in on the selected bar.
timeline.out      Zoom out.
timeline.fit      Show the whole session, and keep it whole as time passes.
timeline.now      Go to the present and stay there: new time scrolls in. Move away to end this.
timeline.show     Zoom so that the selected task, with those below it, fills the chart.
timeline.earlier  Go to earlier times.
timeline.later    Go to later times.
timeline.idle     Fold stretches of ten minutes and more without any work, or show them in full.

In a replay
replay.play       Play or pause, instead of folding. At the end, start over.
replay.step       Pause, and go on by one observation.
replay.step.back  Pause, and go back by one observation.
replay.slower     Play at half the speed.
replay.faster     Play at twice the speed.
replay.start      Go to the first observation.
replay.end        Go to the last observation.

Use
edit              Open a file in your editor: the file that you inspect, or else the selected task's return, or else its
                  handoff.
copy              Copy the path of the same file to the clipboard.

Program
help              List the keys. The left and right arrow keys lead through the manual.
palette           Find any command or theme by its name.
quit              Leave agentwatch. Your agents go on.
suspend           Go to the shell; `fg` there comes back. While you edit a document, undo your last change instead."""
HELP: dict[str, dict[str, str]] = {}  # the sentence for each action, by help heading and action id
for _heading, *_entries in (re.split(r"\n(?! )", part.strip()) for part in _HELP.split("\n\n")):
    HELP[_heading] = {name: " ".join(words) for name, *words in map(str.split, _entries)}

VIEWS = 9  # the number of saved views that have a key


def action_name(action: str) -> str:
    """Return the name of an action without its arguments."""
    return action.partition("(")[0]


def bindings(home: Home) -> list[BindingType]:
    """Return the key bindings of a home (app, screen or widget). Settings change the keys of a binding by its id."""
    return [
        Binding(keys, one.action.format(number), one.words, show=False, priority=one.has_priority, id=name)
        for one in COMMANDS.values()
        if home in one.homes
        for number, (name, keys) in enumerate(_keymap_of(one).items())
    ]


def _keymap_of(command: ActionSpec) -> dict[str, str]:
    """Return the keys of a command by binding id. A numbered command has one binding for each key."""
    if command.is_numbered:
        return {f"{command.id}.{number}": key for number, key in enumerate(command.keys)}
    return {command.id: ",".join(command.keys)}


def commands_of(app: object) -> Mapping[str, ActionSpec]:
    """Return the actions of an app, with the operator's keys."""
    return getattr(app, "commands", COMMANDS)


# The operator's own keys

# The settings cannot remove these keys: the key that records a decision, and the keys that leave a dialog or the app.
RESERVED_KEYS = {"dialog.record": "ctrl+s", "dialog.leave": "escape", "quit": "ctrl+c"}
_KEY = re.compile(
    r"((ctrl|alt|shift)\+)*(\S|f\d\d?|space|backspace|delete|insert|left|right|up|down|home|end|pageup|pagedown|enter"
    r"|escape|tab|comma)"
)


def apply_user_keys(wanted_keys: Iterable[tuple[str, Sequence[str]]]) -> tuple[dict[str, ActionSpec], list[str]]:
    """Return all actions with the operator's keys, and a sentence for each refused setting. `wanted_keys` are pairs of
    action id and keys. If a setting is refused, its action keeps the default keys."""
    commands, faults = dict(COMMANDS), list[str]()
    for name, words in wanted_keys:
        spec, keys, fault = COMMANDS.get(name), [parse_key(word) for word in words], ""
        if spec is None:
            suggestion = did_you_mean(name, COMMANDS) or "`agentwatch help keys` has all"
            fault = f"there is no command {quote_text(name, 40)}; {suggestion}"
        elif None in keys:
            fault = f"{quote_text(words[keys.index(None)], 40)} is no key; write one such as x, R, ctrl+r, f5 or pageup"
        elif spec.is_numbered and len(set(keys)) != len(spec.keys):
            fault = f"it needs a list of {len(spec.keys)} different keys, one for each of its numbers"
        elif (spec.homes[0] is Home.FILTER or (spec.has_priority and spec.homes[0] is not Home.REPLAY)) and any(
            len(key or "") == 1 for key in keys
        ):
            fault = "characters are needed where you write; take another key, such as ctrl+r or f9"
        else:
            commands[name] = spec._replace(keys=tuple(dict.fromkeys(filter(None, [*keys, RESERVED_KEYS.get(name)]))))
        if fault:
            faults.append(f"{locate_setting(f'keys.{name}')}: {fault}{f'; it keeps {spec.keys_label}' if spec else ''}")
    while clash := _find_key_clash(commands):
        name, other, key = clash
        commands |= {name: COMMANDS[name], other: COMMANDS[other]}
        fault = f"{name} and {other} would both have the key {key_label(key)}; give one of them another key"
        faults.append(f"{locate_setting(f'keys.{name}')}: {fault}")
    return commands, faults


def _find_key_clash(commands: Mapping[str, ActionSpec]) -> tuple[str, str, str] | None:
    """Return the ids of two actions that share a key in one place, and this key. Return None if no keys clash."""
    for one, other in permutations(commands.values(), 2):
        own = set(one.keys).difference(COMMANDS[one.id].keys).intersection(other.keys)
        if own and (Home.APP in (*one.homes, *other.homes) or not set(one.homes).isdisjoint(other.homes)):
            return one.id, other.id, own.pop()
    return None


def textual_keymap(commands: Mapping[str, ActionSpec]) -> dict[str, str]:
    """Return the keys that the operator has changed, by binding id, for Textual's `App.set_keymap`."""
    changed = (one for name, one in commands.items() if one != COMMANDS[name])
    return {name: keys for one in changed for name, keys in _keymap_of(one).items()}


def parse_key(word: str) -> str | None:
    """Return Textual's name of a key, or None if `word` names no key. `word` may also be a label from `key_label`."""
    key = next((key for key, label in _KEY_LABELS.items() if label == word), word)
    return key if _KEY.fullmatch(key) and key.isprintable() else None
