"""The dialog of one request of a program: who asks for what exactly, and the answers that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.errors import NoWidget
from textual.widget import Widget

from agentwatch.app.dialogs.asking import LONGEST_RULE, RequestForm, content
from agentwatch.app.dialogs.fields import LABEL
from agentwatch.app.dialogs.frame import Dialog, Wanted
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.cells import shown
from agentwatch.app.widgets.details.page import Page
from agentwatch.decisions.answering import refusal
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.delegation.task import BETWEEN
from agentwatch.text import clean, quoted, whole
from agentwatch.view import times
from agentwatch.view.requests import denial_words, left_words, standing_words
from agentwatch.view.words import plural, program_of, told_apart

if TYPE_CHECKING:
    from agentwatch.decisions.face import OperatorDesk
    from agentwatch.monitor import Monitor

_WIDE: Final = 108
_ROOMY: Final = 60
"""Cells from which a fact has room for all that belongs to it."""
_PAGES: Final = {"pagedown": 1, "pageup": -1}
_COMPARED: Final = 100
"""Tasks that ask, to which the name of the one that asks this is compared."""
_TOAST: Final = 54
_OF_TOAST: Final = 0.7
"""Cells of a toast that is one line, and of the screen's."""
_GROUP: Final = 8
"""Digits of an id that name a request everywhere, and of a digest that are shown; what is compared is all of it."""
_EFFECTS: Final = {
    Action.ALLOW: "allows it, this once",
    Action.DENY: "denies it",
    Action.ANSWER: "answers it",
}


class Opened(NamedTuple):
    """A request as it was when its dialog opened. `where`: see `Case`."""

    monitor: Monitor
    desk: OperatorDesk
    task_id: str
    request: Request
    where: str

    @property
    def now(self) -> Request | None:
        """The request as it is now, None where it is not known any more."""
        asked = self.monitor.tree.request(self.request.request_id)
        return asked.request if asked is not None else None

    @property
    def others(self) -> list[Request]:
        """All that wait in its task, the oldest first."""
        asked = self.monitor.tree.request(self.request.request_id)
        task = self.monitor.tree.tasks.get(asked.task_id) if asked is not None else None
        waiting = [one for one in task.requests if one.waits_for_operator] if task is not None else []
        return sorted(waiting, key=lambda one: (one.asked_at, one.request_id))

    def change(self, now: float) -> str | None:
        """Why it cannot be answered any more, a sentence; None where it can."""
        request = self.now
        if request is None:
            return "It is not offered any more."
        if not request.waits_for_operator:
            return f"It cannot be answered any more: {standing_words(request, now)}."
        if (request.input_sha256, request.shown) != (self.request.input_sha256, self.request.shown):
            return "It is not the one that you looked at."
        if request.until is not None and now >= request.until:
            return "Its time is over: answer it in its terminal."
        return None


class RequestScreen(Dialog):
    """`clock` gives seconds since the epoch, the rest is that of every dialog. It stays with its request, whatever else
    is asked meanwhile."""

    ADVICE: ClassVar[str] = "Leave with escape."

    form: RequestForm

    def __init__(
        self, opened: Opened, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None
    ) -> None:
        super().__init__(RequestForm(opened.request), opened.desk, steady, queue)
        self.opened = opened
        self._clock = clock
        self._page = Page()
        self._is_read = False
        """Whether the end of the call was in sight."""

    def below(self) -> ComposeResult:
        yield from super().below()
        with Vertical(id="words") as words:
            is_permission = self.opened.request.kind is RequestKind.PERMISSION
            words.border_title = "what it wants to do" if is_permission else "what belongs to it"
            yield self._page

    def on_mount(self) -> None:
        # Textual itself calls that of the frame.
        self._page.show(list(content(self.opened.request)), keep=False)
        self.query_one("#words").display = any(content(self.opened.request))
        for scrolls in (self._page, self.query_one("#decision")):
            self.watch(scrolls, "scroll_y", self._scrolled, init=False)
        self.screen_layout_refresh_signal.subscribe(self, lambda _screen: self._say_what_is_left())

    def _scrolled(self) -> None:
        self._say_what_is_left()
        self.call_after_refresh(self.look)

    def _say_what_is_left(self) -> None:
        left = len(self._page.lines) - int(self._page.scroll_offset.y) - self._page.height
        below = f"{plural(left, 'more line')}: pagedown" if left > 0 else ""
        self.query_one("#words").border_subtitle = below

    def on_key(self, event: events.Key) -> None:
        """Whatever has the focus: what is decided on can be read, and the next key chooses."""
        if event.key in _PAGES:
            event.stop()
            self._page.scroll_visible(animate=False)
            self._page.action_move_pages(_PAGES[event.key])

    @on(TreeUpdated)
    def _take_update(self) -> None:
        if self.opened.now != self.opened.request:
            self.look()

    def facts(self, width: int) -> Iterator[Content]:
        for label, value, style in self._about(width):
            name = label
            for line in Content(value).wrap(max(width, 8)):
                yield Content.assemble((f"{name:<{LABEL}}", style or "$text-muted"), (line.plain, style))
                name = ""

    def _about(self, width: int) -> Iterator[tuple[str, str, str]]:
        """Label, value and style of each: lines of ours, in which foreign words stand in quotation marks."""
        request, now = self.opened.request, self._clock()
        yield "from", f"{clean(program_of(request.source), 20)} · {self._asker(width)}", "bold"
        if self.opened.where:
            yield "in", quoted(shown(self.opened.where, 200), max(width - 2, 8)), ""
        if self.opened.monitor.host:
            yield "host", quoted(self.opened.monitor.host, max(width - 2, 8)), "bold"
        yield "asks for", f"{request.kind}: {quoted(request.tool, max(width - 16, 8))}", ""
        yield "asked", ", ".join(self._since(request, now)), ""
        if not self.has_class("-low"):
            yield "request", _identity(request, width), ""
        for number, rule in enumerate(self.form.rules, 1):
            name = f"rule {number}" if len(self.form.rules) > 1 else "the rule"
            yield name, f"for the rest of its session, without asking: {quoted(rule.text, LONGEST_RULE)}", ""
        for warning in self._warnings(request):
            yield "beware", warning, "$text-warning"
        if self.has_class("-low") and request.kind is RequestKind.PERMISSION:
            # What stands below the frame is out of sight there.
            yield "the call", quoted(self._call, max(2 * width, 16)), ""

    def _asker(self, width: int) -> str:
        tree = self.opened.monitor.tree
        asked = tree.request(self.opened.request.request_id)
        task_id = asked.task_id if asked is not None else self.opened.task_id
        if task_id not in tree.tasks:
            return quoted(task_id, 200)
        names = [tree.tasks[one].called for one in (*reversed(tree.ancestors(task_id)), task_id)]
        whole = quoted(BETWEEN.join(names), 1_000)
        task, asking = tree.tasks[task_id], [tree.tasks[one] for one in tree.queue.some(_COMPARED)]
        alike = [task, *(one for one in asking if one.task_id != task_id and one.called == task.called)]
        which = f", {quoted(told_apart(alike)[0], 30)}" if len(alike) > 1 else ""
        return (whole if len(whole) <= width * 2 else quoted(names[-1], 1_000)) + which

    def _since(self, request: Request, now: float) -> Iterator[str]:
        others = self.opened.others
        yield times.ago(request.asked_at, now)
        if self.opened.change(now) is None:
            left = left_words(request, now) or "still open"
            if self.has_class("-low") and request.until is not None:
                left = f"{times.duration(request.until - now)} left"
            yield left
        if len(others) > 1 and (same := [one for one in others if _is_same(one, request)]):
            number = next((number for number, one in enumerate(same, 1) if one.request_id == request.request_id), 0)
            if len(same) > 1 and number:
                yield f"number {number} of {len(same)} equal ones"
            if len(others) > len(same):
                yield f"{plural(len(others) - len(same), 'other')} open beside it"

    def _warnings(self, request: Request) -> Iterator[str]:
        if request.beside:
            names = ", ".join(one.name for one in request.beside)
            yield f"besides the call it is given {quoted(names, 60)}, see below"
        yield from denial_words(request)
        if request.why_not:
            yield clean(request.why_not, 400)
        if self._page.lines and self._page.lines[-1].startswith("truncated: "):
            yield "it is longer than what is shown below"

    def change(self) -> str | None:
        return self.opened.change(self._clock())

    def missing(self) -> Wanted | None:
        # Whatever is chosen: who reads it first, and chooses then, has read it.
        unread = self._unread()
        if wanted := self.form.lacks() or self.form.twice():
            return wanted
        action, note = self.form.action, self.note.strip()
        if action is None:
            return None
        if note and action is not Action.DENY:
            return Wanted("words go with a denial only: clear them, or deny", self._note)
        if unread and action is Action.ALLOW:
            return Wanted(unread, self._page)
        reason = refusal(self.opened.request, action, self.form.params(), note)
        return Wanted(reason, self.form.first) if reason else None

    @property
    def _call(self) -> str:
        """The call, whole: a line break in it is made visible where it stands in one line."""
        pieces = whole(self.opened.request.shown or self.opened.request.input)
        return "".join(f"{chr(10) if piece.begins else ''}{piece.text}" for piece in pieces).removeprefix("\n")

    def _unread(self) -> str:
        """What of the call was not in sight yet, "" once its end was."""
        lines = self._page.lines
        blocks = 2 if self.opened.request.beside else 1
        ends = [number for number, line in enumerate(lines) if number and not line.startswith(" ")]
        end = ends[blocks - 1] if len(ends) >= blocks else len(lines)
        if lines and lines[min(end, len(lines) - 1)].startswith("truncated: "):
            return "it is too long to be read here: answer it in its program"
        is_short = blocks == 1 and len(self._call) <= max(2 * (self._facts.size.width - LABEL), 16)
        if is_short and self.has_class("-low") and self._in_sight(self._facts) >= self._facts.size.height:
            self._is_read = True
        left = end - (int(self._page.scroll_offset.y) + self._in_sight(self._page) if lines else 0)
        self._is_read = self._is_read or (bool(lines) and left <= 0)
        return "" if self._is_read else f"{plural(max(left, 1), 'more line')} below: read to the end first (pagedown)"

    def _in_sight(self, widget: Widget) -> int:
        """Which line of a widget is the last in sight, counted from its first; 0 if none is."""
        try:
            place = self.find_widget(widget)
        except NoWidget:
            return 0
        return place.visible_region.bottom - place.region.y if place.visible_region else 0

    def effect(self) -> str:
        action, rule = self.form.action, self.form.params().rule
        if rule is not None:
            return "allows it, and what the rule covers"
        always = " (“always”: only in its program)" if action is Action.ALLOW and not self.form.rules else ""
        return _EFFECTS[action or Action.ANSWER] + always

    async def sign(self) -> DecisionMade:
        action = self.form.action or Action.DENY
        return await self.opened.monitor.answer(self.opened.request, action, self.form.params(), self.note.strip())

    def outcome(self, decided: DecisionMade) -> str:
        request, before = self.opened.request, "" if decided.fresh else " before"
        done = f"{self.form.done}{before} {clean(program_of(request.source), 20)}: "
        room = min(int(self.size.width * _OF_TOAST), _TOAST) - len(done)
        query = request.queries[0].question if request.queries else ""
        return done + quoted(query or request.shown or request.input, max(room, _GROUP))

    def is_useless(self, command_id: str) -> bool:
        return super().is_useless(command_id) or command_id in _OF_ATTEMPTS

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """There is no document, and nothing else to decide about it."""
        return action not in {"edit_document", "changes", "instead"}


_OF_ATTEMPTS: Final = frozenset({"dialog.edit", "dialog.changes", "dialog.instead"})


def _identity(request: Request, width: int) -> str:
    """The id of a request, and of what its answer is."""
    digits, counts = request.request_id, "an answer counts for exactly what stands below"
    if width < _WIDE:
        return f"{digits[:_GROUP]} …{f'  {counts}' if width >= _ROOMY else ''}"
    name = " ".join(digits[at : at + _GROUP] for at in range(0, len(digits), _GROUP))
    return f"{name}  {counts} (sha256 {request.input_sha256[:_GROUP]} …)"


def _is_same(one: Request, other: Request) -> bool:
    return (one.tool, one.input_sha256) == (other.tool, other.input_sha256)
