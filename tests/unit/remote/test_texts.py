"""Texts and transcripts of a host are requested when somebody looks at them, and are the same here as there."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentwatch.decisions.errors import NoAnswerError
from agentwatch.delegation.tree import Tree
from agentwatch.remote.host import RemoteHost
from agentwatch.remote.pipe import Change, Link, LinkState, Receive
from agentwatch.remote.protocol import Ask, Reply, sign_frame, unpack_frame
from agentwatch.remote.texts import Answers, RemoteTranscript
from agentwatch.sources.sessions.entries import Entry, EntryKind, LinesTranscript, TranscriptEnd
from agentwatch.sources.sessions.fields import Fields
from tests.unit.delegation.asking import ran, session
from tests.unit.remote.between import KEY

RUN = ran(session()).path


class Hurried(RemoteHost):
    answer_seconds = 0.3
    again_seconds = 0.05


class There(Link):
    """A host that answers a question with these replies."""

    def __init__(self, answer: Callable[[Ask], Iterable[Reply]]):
        self.answer, self.asked = answer, list[str]()
        self.host = Hurried(self, "build1", key=KEY.public)

    def start(self, receive: Receive, change: Change):
        self.receive = receive
        change(LinkState(up=True))

    def send(self, message: bytes, to: str = ""):
        if isinstance(ask := unpack_frame(message), Ask):
            self.asked.append(ask.key)
            for reply in self.answer(ask):
                self.receive(sign_frame(reply, KEY))

    def stop(self):
        pass

    def ask(self, *keys: str) -> list[str | None]:
        self.host.add_user(self)
        try:
            return [self.host.fetch("w", "text", key) for key in keys]
        finally:
            self.host.remove_user(self)


def test_a_text_comes_in_parts_in_any_order():
    def answer(ask: Ask) -> Iterable[Reply]:
        text = {"a": "hello", "empty": ""}.get(ask.key)
        pieces = [] if text is None else [text[:2], text[2:]]
        replies = [Reply(id=ask.id, part=n, parts=len(pieces), data=piece) for n, piece in enumerate(pieces)]
        replies = replies or [Reply(id=ask.id)]
        strange = [Reply(id="another", parts=1, data="x"), Reply(id=ask.id, part=7, parts=2, data="x")]
        return (*reversed(replies), *replies, *strange) if len(there.asked) > 2 else ()

    there = There(answer)
    assert there.ask("a", "b", "empty") == ["hello", None, ""]
    # The first two answers were lost on the way.
    assert there.asked == ["a", "a", "a", "b", "empty"]


@pytest.mark.parametrize("lies", [[(5, 6), (0, 2), (1, 2)], [(0, 2), (1, 3)], [(n, 140) for n in range(140)]])
def test_a_contradictory_or_endless_reply_is_no_answer(lies):
    there = There(lambda ask: [Reply(id=ask.id, part=part, parts=parts, data="x" * 130_000) for part, parts in lies])
    with pytest.raises(NoAnswerError):
        there.ask("a")


def entries_in(fields: Fields) -> list[Entry]:
    return [Entry(float(str(fields["at"])), EntryKind(str(fields["kind"])), **fields["more"])]  # type: ignore[arg-type]


class Log:
    """A host with one run, whose transcript is a file."""

    def __init__(self, path: Path):
        self.path, self.is_up, self.now = path, True, 0.0
        tree = Tree()
        tree.apply(ran(session()))
        self.local = LinesTranscript(path, lambda: entries_in)
        there = SimpleNamespace(tree=tree, transcript=lambda _run: LinesTranscript(path, lambda: entries_in))
        self.answers = Answers(there)
        self.far = RemoteTranscript(self.ask, lambda: self.now)

    def write(self, at: float, kind: EntryKind, **more: Any):
        with self.path.open("a") as file:
            file.write(json.dumps({"at": at, "kind": kind.value, "more": more}) + "\n")

    def ask(self, place: str, key: str = RUN) -> str | None:
        ask = Ask(id="s.1", screen="s", workspace="w", what="transcript", key=key, place=place)
        return self.answers.prepare(ask)() if self.is_up else None

    def read_end(self) -> TranscriptEnd:
        """Check that both sides see the same after a while, and return it."""
        self.now += 2
        look, same = self.far.read_end(), self.local.read_end()
        assert look is not None
        assert same is not None
        assert (tuple(look.steps), look.trouble) == (tuple(same.steps), "")
        return look


def test_steps_whole_steps_and_all_entries_are_those_of_the_host(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.write(1_000.0, EntryKind.WORDS, text="I count\nthe seeds")
    log.write(1_001.0, EntryKind.CALL, call="c1", tool="Bash", given={"command": "ls", "deep": [{"a": None}]})
    look = log.read_end()
    assert [*map(log.far.read_step, look.steps)] == [*map(log.local.read_step, look.steps)]
    assert [*log.far.entries()] == [*log.local.entries()]
    # It is not requested again at once, and an unchanged transcript is not sent again.
    assert log.far.read_end() is None
    log.now += 2
    assert log.far.read_end() is None
    log.write(1_002.0, EntryKind.RESULT, call="c1", text="a b c")
    look = log.read_end()
    assert log.ask("look", "other:run") is None
    # The last look stays while the host does not answer.
    log.is_up, log.now = False, log.now + 2
    assert log.far.read_end() == look._replace(trouble="The host does not answer")
    log.is_up, log.now = True, log.now + 2
    assert log.far.read_end() == look


@pytest.mark.parametrize("data", ["[7]", "{", '{"steps": [7]}', "[" * 5_000])
def test_an_invalid_reply_is_no_transcript(data):
    here = RemoteTranscript(lambda _place: data)
    assert here.read_end() is None
    assert [*here.entries()] == []
