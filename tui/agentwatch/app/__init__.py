"""The terminal screens of agentwatch, built with Textual.

The reasons for their design:

- The tree widget is our own, because Textual's `Tree` rebuilds all its lines for each change.
- The app runs the action of a key before it reads the next key. A slow connection may deliver `/abc` in one piece, and
  the letters after `/` belong in the filter. Keys typed into a text field keep their order.
- The dialog of a decision has three regions. The region with the double frame has only our own words, and the task's
  id and paths. Agents chose the id and the paths, so these are in quotation marks or behind a label.
- The recording key works only if nobody has pressed it for 0.6 s. So a held `ctrl+s` cannot run through a whole review.
- Old content stays on the screen until a thread has read the new content. Texts are stored by digest, so that no task
  shows the text of another.
- The operator gets one notification for each question. Several terminals understand both OSC 9 and OSC 777 (control
  sequences that notify), so the app sends only one of the two.
- The first frame is a small screen without a tree. It stays until a thread has loaded the main screen. Keys wait for
  the main screen, except the key to leave.
- Garbage collection starts after the first frame. During the start it would take a fifth of the time.
- `terminal.process_guard` ends the process when the terminal is gone. Otherwise Textual's threads could block for ever
  while they write to this terminal. No data is lost, because all files are written atomically.
"""
