"""Answers that commands gave before, given again as long as nothing that they looked at has changed; and where
something has, what was read in all other files.

Agents call the same commands over and over, and a look at 5,000 tasks takes seconds. So a command notes all that it
looks at, and leaves what it said, with that, in the user's state directory. The next one that is called alike looks
whether all of it is still as it was, and says the same again, without loading anything else.

Why it is so:

- No server, no socket: to look at 15,000 files and directories takes 40 ms, and it is true whoever runs.
- What is noted is noted below Python's own functions (`looks`), and not by each reader: who reads a store for the first
  time cannot forget it, and what is not noted in full (a program was run, another's plugin reads) is not kept.
- The first look at a path counts. If it is as it was then, every look in between saw the same.
- A file is told by its ctime, mtime, size and inode. What has changed so shortly before it was looked at that the next
  change may not show there is not kept. What a decision binds is always read from the file itself.
- What is said of one task depends on few of the files that were looked at. Who says it tells which may matter
  (`passed_over`), and where only others have changed, those are read and nothing is looked for. That is never written
  down: what was kept stays as it is, until so much has changed that a look costs less.
- Words and states depend on the clock, so an answer holds until a moment, which those who make it tell (`until`). One
  of whom nobody has told holds never.
- In the state directory, as what it is about: a sandbox often lets agents write into a cache, and they would then say
  what the operator reads.
- What is kept is sealed (keyed BLAKE2) with a secret that lies beside the directory and not in it. A sandbox that lets
  agents write there and hides the secret lets them forge nothing; `doctor -- CMD` tries whether they can write there.
  Who can read the secret as well says what they like there, but has nothing run: git is asked one question, which is
  put together in code, files are read below /proc and /sys only, and no control character is printed.
- A change through a shared mapping (`mmap`) may move no time of a file: none, while the page is not written back yet,
  and on tmpfs never. To digest every document is what is to be spared. To keep nothing that is so young would cost just
  those calls that follow each other, and temporary workspaces lie on tmpfs. So who does it may hide what a file says,
  for a day at most: no answer, and nothing in the index, gets older. What a decision binds is read from the file.
- Where agents work, some file changes all the time. So what was read in each file, and what each return claims, lies in
  an `index`, beside the answers and sealed as they are. A file is not opened while it has the attributes that it had
  when it was read, if it was not too young then; all else is computed as ever, so that the result is the same. Nobody
  keeps it but who looks at some hundred files: less costs more to keep than to find out.
- What the transcript of a session came to is kept as far as it was read, with the checksum of that: beside an agent at
  work one has a line more at each call. It is read on from there, if it begins as it did (`sources/sessions/folds`).
- Who looks for one task needs no reading of the others, and to read all would cost more than to search their texts. So
  for that the texts lie there, but long ones and those that can be no document of ours.
- It is packed by `pickle`, in C: 10,000 readings take 45 ms, and no other way came near. Nothing is unpacked before its
  seal holds, and then nothing can be called but the few types that it is made of.
- Whatever is wrong with it (cut off, damaged, of another version, somebody else's) it is as if it were not there. To
  delete it is harmless.
"""
