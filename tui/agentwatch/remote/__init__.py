"""Workspaces on other machines: what is observed there is told here, and what is decided here is asked for there.

Why it is so:

- A relay on the host runs an ordinary monitor and tells every observation that its tree takes. The screen has an
  ordinary monitor, too, whose source is the link. So nothing above the sources knows that a workspace is far, and the
  two trees are the same because they are made of the same.
- What the relay tells lies in a book: as much of it as a tree needs, each entry with a number. A screen says up to
  which number it has all, so a cut costs what was missed and no more. A digest of both books tells that they agree.
- A link carries messages and nothing else. It may lose, double, delay and reorder them: whoever needs one asks again.
- All that a host says is signed with its key. Who carries it can lose it or hold it back, and cannot make it up.
- The host decides. A decision made here is a signed request, and counts once it stands in the host's ledger.
"""
