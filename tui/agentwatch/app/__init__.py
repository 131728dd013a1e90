"""The screen.

Why it is so:

- The tree widget is our own: Textual's `Tree` rebuilds all its lines for each change.
- The app runs what a key is bound to before it reads the next one: a slow line hands over `/abc` in one read, and the
  letters would be commands of the tree. A field that is written in gets its keys in their order.
- A dialog of a decision has three regions, and ours has the double frame. Of agents' words it holds only the task's id
  and the path, in quotation marks or behind a label.
- The key that decides counts after 0.6 s without a press, so that one held `ctrl+s` never goes through a whole review.
- What is on the screen stays until a thread has read the next content. Texts are kept by digest: none lands on another
  task.
- An ask is told once, by one route: several terminals know both OSC 9 and OSC 777, and would show two.
- The first frame is a screen of its own, drawn without a tree: a thread loads the rest behind it. Keys typed until
  that is there wait, but for the key to leave with.
- Garbage is looked for from the first frame on; before, that took a fifth of the time.
- `terminal.ending` ends the process when the terminal goes: Textual's threads can wait for ever for a terminal that
  nobody reads. Everything that is written is written so that this costs nothing.
"""
