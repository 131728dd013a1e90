"""One story that the stores of all our programs can tell; what a store is, `store` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.unit.sessions import store
from tests.unit.sessions.store import GARBAGE, NOW, Watch, packet, report, spoil_lines, torn

__all__ = [
    "CART", "GARBAGE", "INDEX", "LOOK", "NOW", "OTHER", "PAY", "SEARCH", "STORY", "THOUGHT", "WORDS", "Store", "Watch",
    "packet", "report", "spoil_lines", "torn",
]  # fmt: skip

SEARCH, INDEX, WORDS, CART, PAY = "shop.search", "shop.index", "shop.index.words", "shop.cart", "shop.pay"
LOOK: Final = "Look around and say what you think."
THOUGHT: Final = "It looks well kept. I would leave it as it is."
OTHER: Final = "shelf.dust"
"""The task of the second session, which is removed in the end."""

STORY: Final[Mapping[str, Sequence[str]]] = {
    SEARCH: ["failed", "completed"],
    INDEX: ["completed"],
    WORDS: ["completed"],
    CART: ["canceled"],
    PAY: ["working"],
}
"""The states of the attempts of each task. SEARCH was tried again in a new session, INDEX was sent on in its own and
had WORDS done by another agent, CART was aborted, PAY is still being worked on. Beside them one answers in prose."""


@dataclass
class Store(store.Store):
    """A store that tells the story, or what it can of it."""

    tasks: Mapping[str, Sequence[str]] = field(default_factory=lambda: STORY)
