"""Texts of a host are asked for when somebody looks, in parts that come in any order, and kept for a while."""

from __future__ import annotations

import threading

import pytest

from agentwatch.decisions.errors import NoAnswerError
from agentwatch.remote import texts as module
from agentwatch.remote.protocol import Ask, Reply
from agentwatch.remote.texts import Texts


class There:
    """A host that answers with these texts, parts backwards and twice; it loses the first `losses` questions."""

    def __init__(self, losses: int = 0, **known: str) -> None:
        self.asked: list[Ask] = []
        self.losses, self.known, self.is_up = losses, known, True
        self.texts = Texts(self.say, lambda: self.is_up)

    def say(self, ask: Ask) -> None:
        self.asked.append(ask)
        if len(self.asked) <= self.losses:
            return
        text = self.known.get(ask.key)
        pieces = [] if text is None else [text[:2], text[2:]]
        count = len(pieces)
        replies = [Reply(id=ask.id, part=n, parts=count, data=piece) for n, piece in enumerate(pieces)]
        replies = replies or [Reply(id=ask.id)]
        strange = [Reply(id="another", parts=1, data="x"), Reply(id=ask.id, part=7, parts=2, data="x")]

        def answer() -> None:
            for reply in (*reversed(replies), *replies, *strange):
                self.texts.receive(reply)

        threading.Thread(target=answer, daemon=True).start()


def test_a_text_comes_in_parts_and_is_asked_for_once() -> None:
    there = There(a="hello", empty="")
    assert there.texts.text("s", "w", "a") == there.texts.text("s", "w", "a") == "hello"
    assert len(there.asked) == 1
    assert there.asked[0].id.startswith("s.")
    assert there.texts.text("s", "w", "b") is None
    assert there.texts.text("s", "w", "empty") == ""
    assert not there.texts._arriving


@pytest.mark.parametrize("lies", [[(5, 6), (0, 2), (1, 2)], [(0, 2), (1, 3)]])
def test_an_answer_that_says_now_this_now_that_is_none_and_breaks_nothing(
    lies: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.1)

    def say(ask: Ask) -> None:
        for part, parts in lies:
            texts.receive(Reply(id=ask.id, part=part, parts=parts, data="x"))

    texts = Texts(say, lambda: True)
    with pytest.raises(NoAnswerError):
        texts.text("s", "w", "a")


def test_an_answer_that_never_ends_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.1)
    monkeypatch.setattr(module, "LARGEST_ANSWER", 1_000)
    held: list[int] = []

    def say(ask: Ask) -> None:
        for number in range(1_000):
            texts.receive(Reply(id=ask.id, part=number, parts=1_000, data="x" * 100))
        held.append(sum(map(len, texts._arriving[ask.id].found.values())))

    texts = Texts(say, lambda: True)
    with pytest.raises(NoAnswerError):
        texts.text("s", "w", "a")
    assert held[0] <= 1_000
