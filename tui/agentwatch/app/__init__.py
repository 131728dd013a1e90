"""The screen.

The reasons for its design:

- The tree widget is our own, because Textual's `Tree` rebuilds all its lines for each change.
- The app runs the action of a key before it reads the next key: over a slow line `/abc` arrives in one read, and
  without this the letters would be commands of the tree. A focused text field gets its keys in their order.
- The dialog of a decision has three regions; the one with the double frame holds our own words. The only words of
  agents in it are the task's id and paths, in quotation marks or behind a label.
- The deciding key works only after 0.6 s without a press, so that a held `ctrl+s` never runs through a whole review.
- Old content stays on the screen until a thread has read the new content. Texts are stored by digest, so none is shown
  for another task.
- Each question is notified once, by one route: several terminals know both OSC 9 and OSC 777, and would show two.
- The first frame is a screen of its own without a tree, while a thread loads the rest. Keys typed before that is loaded
  wait for it, except the key to leave.
- Garbage collection starts after the first frame; before, it would take a fifth of the time.
- `terminal.process_guard` ends the process when the terminal goes, because Textual's threads can wait for ever for a
  terminal that nobody reads. No data is lost by that, because all files are written atomically.
"""
