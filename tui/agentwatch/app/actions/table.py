"""Every command of the screen, one row each, in the order of the footer: a narrow one drops the last."""

from __future__ import annotations

from functools import partial
from typing import Final

from agentwatch.app.actions.command import Command, Group, Home, Place

_APP: Final = (Home.APP,)
_INSPECT: Final = (Home.INSPECT,)
_MAIN: Final = (Home.MAIN,)
_PANE: Final = (Home.PANE,)
_ROWS: Final = (Home.TREE, Home.CHART)
_LINES: Final = (*_ROWS, Home.LINES)
_SCREENS: Final = (Home.MAIN, Home.PAGE)
_TREE: Final = (Home.TREE,)

_DETAILS: Final = (Place.DETAILS, Place.PAGE)
_SELECTED: Final = (Place.TREE, Place.DETAILS, Place.PAGE, Place.TIMELINE, Place.INSPECT)
"""Where a task is selected."""

_filter = partial(Command, homes=(Home.FILTER,), group=Group.FILTER, footer=(Place.FILTER,))
_decide = partial(Command, homes=_APP, group=Group.DECIDE, footer=_SELECTED, acts=True)
_aside = partial(Command, homes=_APP, group=Group.ASIDE, acts=True)
_dialog = partial(Command, homes=(Home.DECIDE,), group=Group.DIALOG, footer=(Place.DECIDE,), priority=True)
_chart = partial(Command, homes=(Home.CHART,), group=Group.TIMELINE, footer=(Place.TIMELINE,))
_replay = partial(Command, homes=(Home.REPLAY,), group=Group.REPLAY, priority=True)
_pane = partial(Command, homes=_PANE, group=Group.DETAILS, footer=_DETAILS)
_move = partial(Command, homes=_LINES, group=Group.MOVE)

# fmt: off
COMMANDS: Final[tuple[Command, ...]] = (
    # Of what is looked at.
    _filter(id="filter.done", keys="enter", action="done", words="keep",
            tooltip="Keep the filter and go back to the tree."),
    _filter(id="filter.drop", keys="escape", action="drop", words="clear",
            tooltip="Clear the filter and go back to the tree."),
    _filter(id="filter.down", keys="down", action="down", words="to the tree",
            tooltip="Keep the filter and go on in the tree."),
    _filter(id="filter.complete", keys="tab", action="complete", words="complete",
            tooltip="Write a key or a value to its end, as `→` does. Where there is none, go to the tree."),
    _filter(id="filter.earlier", keys="up", action="earlier", words="earlier",
            tooltip="In an empty field: the filter that was kept last, and those before it."),
    Command(id="back", keys="escape", action="back", homes=(Home.MAIN, Home.PAGE, Home.TIMELINE, Home.INSPECT),
            group=Group.LOOK, words="back",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.HELP, Place.TIMELINE, Place.INSPECT),
            words_in=((Place.TREE, "clear the filter"),),
            tooltip="Go back: from the details or the timeline to the tree; in the tree, clear the filter."),
    Command(id="open", keys="enter", action="open", homes=_TREE, group=Group.LOOK, words="open", footer=(Place.TREE,),
            title="Open the details", tooltip="Open the details of the selected task."),
    _pane(id="inspect", keys="enter", action="inspect", words="inspect", acts=True,
          tooltip="Look at the file of the selected claim, at the command that it rests on, or at a changed file that "
                  "nobody claims; in Live, read the whole entry."),
    Command(id="live.search", keys="/", action="search", homes=(Home.PAGE,), group=Group.DETAILS, words="search",
            footer=_DETAILS, tooltip="In Live, beside the tree, too: show only the entries with some words; `esc` "
                                     "shows all again."),
    _pane(id="live.pager", keys="p", action="page_transcript", words="pager", acts=True,
          title="Open the transcript in the pager", tooltip="In Live: open the whole transcript in your `$PAGER`."),
    Command(id="tabs", keys="1 2 3 4 5 6 7 8", is_numbered=True, action="tab", homes=_SCREENS, group=Group.DETAILS,
            words="tabs", footer=_DETAILS, tooltip="Go to a tab of the details."),
    Command(id="inspect.switch", keys="d tab", action="switch", homes=_INSPECT, group=Group.DETAILS, words="difference",
            footer=(Place.INSPECT,), tooltip="Switch between that file and its git diff since the handoff."),
    _pane(id="compare.earlier", keys="-", action="compare(-1)", words="earlier", tooltip="Compare earlier attempts."),
    _pane(id="compare.later", keys="+ =", action="compare(1)", words="later attempts",
          tooltip="Compare later attempts."),
    Command(id="needs.next", keys="n", action="go_asking(1)", homes=_SCREENS, group=Group.LOOK, words="next",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE), title="Next task that needs you",
            tooltip="Go to the next task that needs you."),
    Command(id="needs.previous", keys="N", action="go_asking(-1)", homes=_SCREENS, group=Group.LOOK, words="previous",
            title="Previous task that needs you", tooltip="Go to the previous task that needs you."),
    Command(id="unseen.next", keys="u", action="go_unseen(1)", homes=_SCREENS, group=Group.LOOK, words="new",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE), title="Next task that is new",
            tooltip="Go to the next task that has ended, failed or changed its ask since you looked at it, the newest"
                    " first."),
    Command(id="unseen.previous", keys="U", action="go_unseen(-1)", homes=_SCREENS, group=Group.LOOK, words="new",
            title="Previous task that is new", tooltip="Go to the previous task that is new."),
    # Of decisions, and the dialogs they are made in.
    _decide(id="decide.retry", keys="r", action="decide('retry')", words="retry", title="Decide: retry",
            tooltip="Retry the selected task, with an amended handoff."),
    _decide(id="decide.escalate", keys="e", action="decide('escalate')", words="escalate", title="Decide: escalate",
            tooltip="Give the selected task to another mode; a line fault goes to the fitter."),
    _decide(id="decide.abort", keys="x", action="decide('abort')", words="abort", title="Decide: abort",
            tooltip="Abort the selected task and what is below it, with a final error report."),
    _decide(id="decide.respond", keys="a", action="decide('respond')", words="answer", title="Decide: answer",
            tooltip="Answer what the selected task asks, its program's request too; from any other task, the request"
                    " that comes first."),
    _decide(id="decide.accept", keys="y", action="decide('accept')", words="accept", title="Decide: accept",
            tooltip="Accept as it is, with a reason: a return that is partial or invalid, has a false claim, or asks"
                    " for a review."),
    _decide(id="review", keys="R", action="review", words="review", title="Review what needs you",
            tooltip="Decide about the marked tasks, or all that need you and each request, one after another."),
    Command(id="mark", keys="m", action="mark", homes=_TREE, group=Group.DECIDE, words="mark",
            title="Mark for the review", acts=True,
            tooltip="Mark the selected task for the review, or take the mark away."),
    _aside(id="acknowledge", keys="A", action="acknowledge", words="acknowledge", title="Acknowledge",
           footer=(Place.TREE, Place.DETAILS, Place.PAGE),
           tooltip="Have the selected task, with what is below it, the selected group, or all that the filter finds,"
                   " ask no more until it changes, and be new no more. This approves nothing and reaches no agent."),
    _aside(id="snooze", keys="w", action="snooze", words="snooze", title="Snooze",
           tooltip="Have the selected task ask later: in half an hour, tomorrow, or when it changes."),
    _aside(id="aside.undo", keys="Z", action="undo_aside", words="undo", title="Undo: acknowledge or snooze",
           tooltip="Take back what was acknowledged or snoozed last; again, what was before that."),
    _dialog(id="dialog.record", keys="ctrl+s", action="record", words="record", by_key=True,
            tooltip="Record the decision. Nothing else records it: no click, and no other key."),
    _dialog(id="dialog.leave", keys="escape", action="leave", words="leave",
            tooltip="Leave without a decision; a review ends here."),
    _dialog(id="dialog.break", keys="ctrl+c", action="copy_or_leave", words="leave", footer=(), priority=False,
            tooltip="The same; where text is selected, copy it and stay."),
    _dialog(id="dialog.skip", keys="ctrl+n", action="skip", words="skip",
            tooltip="In a review: go on to the next task, this one stays undecided."),
    _dialog(id="dialog.instead", keys="f2 f3 f4 f5 f6", is_numbered=True, action="instead", words="otherwise",
            each=("retry", "escalate", "abort", "answer", "accept"),
            tooltip="Decide otherwise about the same task: retry, escalate, abort, answer, accept."),
    _dialog(id="dialog.next", keys="tab", action="next_field", words="next",
            tooltip="Go to the next field. Arrow keys choose in it."),
    _dialog(id="dialog.previous", keys="shift+tab", action="previous_field", words="previous", footer=(),
            tooltip="Go to the field before."),
    _dialog(id="dialog.edit", keys="ctrl+e", action="edit_document", words="editor",
            tooltip="Open the handoff, or the report, in your editor."),
    _dialog(id="dialog.changes", keys="ctrl+t", action="changes", words="changes",
            tooltip="Show what is changed in the last handoff, or go on editing."),
    # Of the timeline.
    Command(id="timeline.open", keys="enter", action="open", homes=(Home.TIMELINE,), group=Group.TIMELINE, words="tree",
            footer=(Place.TIMELINE,), tooltip="Go to the selected task in the tree."),
    _chart(id="timeline.in", keys="+ =", action="zoom(1)", words="zoom in", tooltip="Zoom in on the selected bar."),
    _chart(id="timeline.out", keys="- _", action="zoom(-1)", words="out", tooltip="Zoom out."),
    _chart(id="timeline.fit", keys="0", action="fit", words="all",
           tooltip="Show all of time, and make room for more as it passes."),
    _chart(id="timeline.now", keys="n", action="now", words="now",
           tooltip="Go to the present and stay with it: new time scrolls in. Moving away ends this."),
    _chart(id="timeline.show", keys="z", action="show", words="this task",
           tooltip="Zoom so that the selected task, with what is below it, fills the chart."),
    _chart(id="timeline.earlier", keys="left h", action="pan(-1)", words="earlier", tooltip="Go to earlier times."),
    _chart(id="timeline.later", keys="right l", action="pan(1)", words="later", tooltip="Go to later times."),
    _chart(id="timeline.idle", keys="i", action="fold_idle", words="fold idle time",
           tooltip="Fold stretches of ten minutes and more in which nobody did anything, or show them in full."),
    # Of finding, moving and folding, and what is done with the selected task.
    Command(id="filter", keys="/", action="filter", homes=_MAIN, group=Group.FIND, words="filter", footer=(Place.TREE,),
            title="Filter", tooltip="Show only the tasks that match: words of id, title, agent or objective, and terms"
                                    " such as `state:failed`. The manual's topic `find` tells all."),
    Command(id="views", keys="1 2 3 4 5 6 7 8 9", is_numbered=True, action="screen.view", homes=_TREE, group=Group.FIND,
            words="views", footer=(Place.TREE,),
            tooltip="Show a view of your settings, or everything again. Without views, the keys in the tree go to the"
                    " tabs, too."),
    Command(id="filter.state", keys="s", action="filter_state(1)", homes=_MAIN, group=Group.FIND, words="state",
            footer=(Place.TREE,), title="Filter by state",
            tooltip="Show only tasks in one state: each press goes on to the next state there is."),
    Command(id="filter.state.back", keys="S", action="filter_state(-1)", homes=_MAIN, group=Group.FIND, words="state",
            tooltip="Go back to the state before."),
    Command(id="follow", keys="f", action="follow", homes=_MAIN, group=Group.LOOK, words="follow",
            footer=(Place.TREE,), title="Follow what happens",
            tooltip="Follow what happens: the cursor goes to the task that changed last. Moving it yourself "
                    "ends this."),
    Command(id="timeline", keys="t", action="timeline", homes=(Home.MAIN, Home.TIMELINE), group=Group.LOOK,
            words="timeline", footer=(Place.TREE,), title="Timeline",
            tooltip="Show all tasks over time, who works and who waits; in the timeline, go back to the tree."),
    Command(id="history", keys="H", action="history", homes=_TREE, group=Group.FIND, words="history",
            title="Go to the history", tooltip="Go to what was there before you first watched, and open it."),
    Command(id="fold", keys="space", action="toggle_fold", homes=_ROWS, group=Group.FOLD, words="fold",
            footer=(Place.TREE,), tooltip="Fold or unfold the selected task."),
    _decide(id="edit", keys="o", action="edit", group=Group.USE, words="edit",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.INSPECT, Place.TIMELINE),
            title="Open the file in the editor",
            tooltip="Open the selected task's return, else its handoff, or the inspected file, in your editor."),
    _decide(id="copy", keys="c", action="copy_path", group=Group.USE, words="copy path",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.INSPECT, Place.TIMELINE), title="Copy the path",
            tooltip="Copy the path of that file to the clipboard."),
    _pane(id="tab.next", keys="right l", action="next_tab(1)", words="next tab", footer=(),
          tooltip="Go to the next tab."),
    _pane(id="tab.previous", keys="left h", action="next_tab(-1)", words="previous tab", footer=(),
          tooltip="Go to the tab before."),
    Command(id="focus.next", keys="tab", action="switch", homes=_MAIN, group=Group.MOVE, words="switch",
            footer=(Place.TREE, Place.DETAILS), tooltip="Go from the tree to the details and back."),
    Command(id="focus.previous", keys="shift+tab", action="switch", homes=_MAIN, group=Group.MOVE, words="switch",
            tooltip="Go from the details to the tree and back."),
    Command(id="fold.none", keys="E", action="fold_all(False)", homes=_ROWS, group=Group.FOLD, words="expand all",
            footer=(Place.TREE,), title="Expand everything", tooltip="Expand everything."),
    Command(id="fold.all", keys="C", action="fold_all(True)", homes=_ROWS, group=Group.FOLD, words="collapse all",
            footer=(Place.TREE,), title="Collapse everything", tooltip="Collapse everything."),
    _move(id="up", keys="up k", action="move_by(-1)", words="up", tooltip="Go up one row."),
    _move(id="down", keys="down j", action="move_by(1)", words="down", tooltip="Go down one row."),
    Command(id="left", keys="left h", action="cursor_left", homes=_TREE, group=Group.FOLD, words="out",
            tooltip="Fold the task; where it is folded, go to its parent."),
    Command(id="right", keys="right l", action="cursor_right", homes=_TREE, group=Group.FOLD, words="in",
            tooltip="Unfold the task; where it is unfolded, go to its first child."),
    _move(id="page.up", keys="pageup ctrl+u", action="move_pages(-1)", words="page up", tooltip="Go up one page."),
    _move(id="page.down", keys="pagedown ctrl+d", action="move_pages(1)", words="page down",
          tooltip="Go down one page."),
    Command(id="page.on", keys="space", action="move_pages(1)", homes=(Home.LINES,), group=Group.DETAILS,
            words="page down", tooltip="Go down one page."),
    _move(id="first", keys="home g", action="first_line", words="first", tooltip="Go to the first row."),
    _move(id="last", keys="end G", action="last_line", words="last", tooltip="Go to the last row."),
    Command(id="notices", keys="!", action="notices", homes=_MAIN, group=Group.LOOK, words="notices",
            footer=(Place.EMPTY,), title="Files with a problem",
            tooltip="List the files that could not be read or belong to no task."),
    # Of a replay.
    _replay(id="replay.play", keys="space", action="play", words="play", title="Play or pause",
            tooltip="Play or pause, instead of folding; at the end, start over."),
    _replay(id="replay.step", keys=".", action="step(1)", words="step", tooltip="Pause, and go on by one observation."),
    _replay(id="replay.step.back", keys="comma", action="step(-1)", words="back",
            tooltip="Pause, and go back by one observation."),
    _replay(id="replay.slower", keys="<", action="change_speed(0.5)", words="slower",
            tooltip="Play at half the speed."),
    _replay(id="replay.faster", keys=">", action="change_speed(2.0)", words="faster",
            tooltip="Play at twice the speed."),
    _replay(id="replay.start", keys="[", action="rewind", words="start", title="Go to the start of the recording",
            tooltip="Go to the first observation."),
    _replay(id="replay.end", keys="]", action="wind", words="end", title="Go to the end of the recording",
            tooltip="Go to the last observation."),
    # Of the program itself.
    Command(id="help", keys="?", action="help", homes=_APP, group=Group.PROGRAM, words="keys",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.EMPTY, Place.TIMELINE, Place.INSPECT),
            title="Keys and manual", tooltip="List the keys; the arrow keys left and right lead through the manual."),
    Command(id="palette", keys="ctrl+p", action="command_palette", homes=_APP, group=Group.PROGRAM, words="palette",
            priority=True, tooltip="Find any command by its name; the themes are there, too."),
    Command(id="quit", keys="q ctrl+c", action="quit", homes=_APP, group=Group.PROGRAM, words="quit",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.EMPTY, Place.INSPECT), title="Quit",
            tooltip="Leave agentwatch. Nothing that runs is touched."),
    Command(id="suspend", keys="ctrl+z", action="suspend_process", homes=_APP, group=Group.PROGRAM, words="shell",
            footer=(Place.TREE, Place.DETAILS, Place.PAGE, Place.EMPTY, Place.INSPECT), title="Go to the shell",
            priority=True, tooltip="Go to the shell; `fg` comes back, and reads what has happened. In a document that "
                                   "you edit: undo."),
)
