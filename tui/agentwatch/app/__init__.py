"""The screen.

The reasons for its design:

- The tree widget is our own, because Textual's `Tree` rebuilds all its lines for each change.
- The app runs the action of a key before it reads the next key. Over a slow line `/abc` arrives in one read, and the
  letters after `/` belong in the filter. Keys typed into a text field keep their order.
- The dialog of a decision has three regions. The one with the double frame holds our own words. The only words of
  agents in it are the task's id and paths, in quotation marks or behind a label.
- The deciding key works only after 0.6 s without a press, so that a held `ctrl+s` never runs through a whole review.
- Old content stays on the screen until a thread has read the new content. Texts are stored by digest, so that no task
  shows the text of another.
- The operator gets one notification of each question. Several terminals know both OSC 9 and OSC 777, so the app never
  sends both.
- The first frame is a screen of its own without a tree, while a thread loads the main screen. Keys typed meanwhile wait
  for the main screen, except the key to leave.
- Garbage collection starts after the first frame. Before, it would take a fifth of the time.
- `terminal.process_guard` ends the process when the terminal is gone. Without it, Textual's threads can wait for ever
  for a terminal that nobody reads. No data is lost, because all files are written atomically.
"""
