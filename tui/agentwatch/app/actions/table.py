"""Every action of the screen, in the order of the footer: a narrow one drops the last.

Below the heading of the help screen that it belongs to, each is a line and the sentence that explains it:
`id | keys | action | words in the footer; place: other words there | homes | places of footers | title | flags`.
The flag `each` says that the sentence names the numbered keys one by one, behind its colon.
"""

from __future__ import annotations

from typing import Final

TABLE: Final = """
== In the filter line
filter.done | enter | done | keep | filter | filter
    Keep the filter and go back to the tree.
filter.drop | escape | drop | clear | filter | filter
    Clear the filter and go back to the tree.
filter.down | down | down | to the tree | filter | filter
    Keep the filter and go on in the tree.
filter.complete | tab | complete | complete | filter | filter
    Write a key or a value to its end, as `→` does. Where there is none, go to the tree.
filter.earlier | up | earlier | earlier | filter | filter
    In an empty field: the filter that was kept last, and those before it.
== Look
back | escape | back | back; tree: clear the filter | main page timeline inspect | selected
    Go back: from the details or the timeline to the tree; in the tree, clear the filter.
open | enter | open | open | tree | tree | Open the details
    Open the details of the selected task.
== In the details
inspect | enter | inspect | inspect | pane | details page | | acts
    Look at the file of the selected claim, at the command that it rests on, or at a changed file that nobody
    claims; in Live, read the whole entry.
live.search | / | search | search | page | details page
    In Live, beside the tree, too: show only the entries with some words; `esc` shows all again.
live.pager | p | page_transcript | pager | pane | details page | Open the transcript in the pager | acts
    In Live: open the whole transcript in your `$PAGER`.
tabs | 1 2 3 4 5 6 7 8 | tab | tabs | main page | details page | | numbered
    Go to a tab of the details.
inspect.switch | d tab | switch | difference | inspect | inspect
    Switch between that file and its git diff since the handoff.
compare.earlier | - | compare(-1) | earlier | pane | details page
    Compare earlier attempts.
compare.later | + = | compare(1) | later attempts | pane | details page
    Compare later attempts.
== Look
needs.next | n | go_asking(1) | next | main page | tree details page | Next task that needs you
    Go to the next task that needs you.
needs.previous | N | go_asking(-1) | previous | main page | | Previous task that needs you
    Go to the previous task that needs you.
unseen.next | u | go_unseen(1) | new | main page | tree details page | Next task that is new
    Go to the next task that has ended, failed or changed its ask since you looked at it, the newest first.
unseen.previous | U | go_unseen(-1) | new | main page | | Previous task that is new
    Go to the previous task that is new.
== Decide
decide.retry | r | decide('retry') | retry | app | selected | Decide: retry | acts
    Retry the selected task, with an amended handoff.
decide.escalate | e | decide('escalate') | escalate | app | selected | Decide: escalate | acts
    Give the selected task to another mode; a line fault goes to the fitter.
decide.abort | x | decide('abort') | abort | app | selected | Decide: abort | acts
    Abort the selected task and what is below it, with a final error report.
decide.respond | a | decide('respond') | answer | app | selected | Decide: answer | acts
    Answer what the selected task asks, its program's request too; from any other task, the request that comes
    first.
decide.accept | y | decide('accept') | accept | app | selected | Decide: accept | acts
    Accept as it is, with a reason: a return that is partial or invalid, has a false claim, or asks for a review.
review | R | review | review | app | selected | Review what needs you | acts
    Decide about the marked tasks, or all that need you and each request, one after another.
mark | m | mark | mark | tree | | Mark for the review | acts
    Mark the selected task for the review, or take the mark away.
== Put aside
acknowledge | A | acknowledge | acknowledge | app | tree details page | Acknowledge | acts
    Have the selected task, with what is below it, the selected group, or all that the filter finds, ask no more
    until it changes, and be new no more. This approves nothing and reaches no agent.
snooze | w | snooze | snooze | app | | Snooze | acts
    Have the selected task ask later: in half an hour, tomorrow, or when it changes.
aside.undo | Z | undo_aside | undo | app | | Undo: acknowledge or snooze | acts
    Take back what was acknowledged or snoozed last; again, what was before that.
== In a decision
dialog.record | ctrl+s | record | record | decide | decide | | priority by_key
    Record the decision. Nothing else records it: no click, and no other key.
dialog.leave | escape | leave | leave | decide | decide | | priority
    Leave without a decision; a review ends here.
dialog.break | ctrl+c | copy_or_leave | leave | decide
    The same; where text is selected, copy it and stay.
dialog.skip | ctrl+n | skip | skip | decide | decide | | priority
    In a review: go on to the next task, this one stays undecided.
dialog.instead | f2 f3 f4 f5 f6 | instead | otherwise | decide | decide | | priority numbered each
    Decide otherwise about the same task: retry, escalate, abort, answer, accept.
dialog.next | tab | next_field | next | decide | decide | | priority
    Go to the next field. Arrow keys choose in it.
dialog.previous | shift+tab | previous_field | previous | decide | |  | priority
    Go to the field before.
dialog.edit | ctrl+e | edit_document | editor | decide | decide | | priority
    Open the handoff, or the report, in your editor.
dialog.changes | ctrl+t | changes | changes | decide | decide | | priority
    Show what is changed in the last handoff, or go on editing.
== In the timeline
timeline.open | enter | open | tree | timeline | timeline
    Go to the selected task in the tree.
timeline.in | + = | zoom(1) | zoom in | chart | timeline
    Zoom in on the selected bar.
timeline.out | - _ | zoom(-1) | out | chart | timeline
    Zoom out.
timeline.fit | 0 | fit | all | chart | timeline
    Show all of time, and make room for more as it passes.
timeline.now | n | now | now | chart | timeline
    Go to the present and stay with it: new time scrolls in. Moving away ends this.
timeline.show | z | show | this task | chart | timeline
    Zoom so that the selected task, with what is below it, fills the chart.
timeline.earlier | left h | pan(-1) | earlier | chart | timeline
    Go to earlier times.
timeline.later | right l | pan(1) | later | chart | timeline
    Go to later times.
timeline.idle | i | fold_idle | fold idle time | chart | timeline
    Fold stretches of ten minutes and more in which nobody did anything, or show them in full.
== Find
filter | / | filter | filter | main | tree | Filter
    Show only the tasks that match: words of id, title, agent or objective, and terms such as `state:failed`. The
    manual's topic `find` tells all.
views | 1 2 3 4 5 6 7 8 9 | screen.view | views | tree | tree | | numbered
    Show a view of your settings, or everything again. Without views, the keys in the tree go to the tabs, too.
filter.state | s | filter_state(1) | state | main | tree | Filter by state
    Show only tasks in one state: each press goes on to the next state there is.
filter.state.back | S | filter_state(-1) | state | main
    Go back to the state before.
== Look
follow | f | follow | follow | main | tree | Follow what happens
    Follow what happens: the cursor goes to the task that changed last. Moving it yourself ends this.
timeline | t | timeline | timeline | main timeline | tree | Timeline
    Show all tasks over time, who works and who waits; in the timeline, go back to the tree.
== Find
history | H | history | history | tree | | Go to the history
    Go to what was there before you first watched, and open it.
== Fold
fold | space | toggle_fold | fold | tree chart | tree
    Fold or unfold the selected task.
== Use
edit | o | edit | edit | app | tree details page inspect timeline | Open the file in the editor | acts
    Open the selected task's return, else its handoff, or the inspected file, in your editor.
copy | c | copy_path | copy path | app | tree details page inspect timeline | Copy the path | acts
    Copy the path of that file to the clipboard.
== In the details
tab.next | right l | next_tab(1) | next tab | pane
    Go to the next tab.
tab.previous | left h | next_tab(-1) | previous tab | pane
    Go to the tab before.
== Move
focus.next | tab | switch | switch | main | tree details
    Go from the tree to the details and back.
focus.previous | shift+tab | switch | switch | main
    Go from the details to the tree and back.
== Fold
fold.none | E | fold_all(False) | expand all | tree chart | tree | Expand everything
    Expand everything.
fold.all | C | fold_all(True) | collapse all | tree chart | tree | Collapse everything
    Collapse everything.
== Move
up | up k | move_by(-1) | up | tree chart lines
    Go up one row.
down | down j | move_by(1) | down | tree chart lines
    Go down one row.
== Fold
left | left h | cursor_left | out | tree
    Fold the task; where it is folded, go to its parent.
right | right l | cursor_right | in | tree
    Unfold the task; where it is unfolded, go to its first child.
== Move
page.up | pageup ctrl+u | move_pages(-1) | page up | tree chart lines
    Go up one page.
page.down | pagedown ctrl+d | move_pages(1) | page down | tree chart lines
    Go down one page.
== In the details
page.on | space | move_pages(1) | page down | lines
    Go down one page.
== Move
first | home g | first_line | first | tree chart lines
    Go to the first row.
last | end G | last_line | last | tree chart lines
    Go to the last row.
== Look
notices | ! | notices | notices | main | empty | Files with a problem
    List the files that could not be read or belong to no task.
== In a replay
replay.play | space | play | play | replay | | Play or pause | priority
    Play or pause, instead of folding; at the end, start over.
replay.step | . | step(1) | step | replay | |  | priority
    Pause, and go on by one observation.
replay.step.back | comma | step(-1) | back | replay | |  | priority
    Pause, and go back by one observation.
replay.slower | < | change_speed(0.5) | slower | replay | |  | priority
    Play at half the speed.
replay.faster | > | change_speed(2.0) | faster | replay | |  | priority
    Play at twice the speed.
replay.start | [ | rewind | start | replay | | Go to the start of the recording | priority
    Go to the first observation.
replay.end | ] | wind | end | replay | | Go to the end of the recording | priority
    Go to the last observation.
== Program
help | ? | help | keys | app | tree details page empty timeline inspect | Keys and manual
    List the keys; the arrow keys left and right lead through the manual.
palette | ctrl+p | command_palette | palette | app | |  | priority
    Find any command by its name; the themes are there, too.
quit | q ctrl+c | quit | quit | app | tree details page empty inspect | Quit
    Leave agentwatch. Nothing that runs is touched.
suspend | ctrl+z | suspend_process | shell | app | tree details page empty inspect | Go to the shell | priority
    Go to the shell; `fg` comes back, and reads what has happened. In a document that you edit: undo.
"""
