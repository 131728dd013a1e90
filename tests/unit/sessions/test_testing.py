"""The checks of `agentwatch.testing` pass the reader in the manual, and each fails one that breaks its promise."""

from __future__ import annotations

import sys
from importlib.resources import files
from types import ModuleType
from typing import Any

import pytest

import agentwatch
from agentwatch.testing import CHECKS, Build


def block(name: str) -> str:
    """A file of the project in the manual."""
    text = (files(agentwatch) / "manual" / "source.md").read_text("utf-8")
    return text.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0].partition("\n")[2].rsplit("```", 1)[0]


def build(monkeypatch: pytest.MonkeyPatch, before: str = "", after: str = "") -> Build:
    """The store of the manual's test, with its reader, changed in one place."""
    code = block("a source of your own")
    assert before in code
    reader, test = ModuleType("agentwatch_scribe"), dict[str, Any]()
    exec(code.replace(before, after, 1), reader.__dict__)
    monkeypatch.setitem(sys.modules, "agentwatch_scribe", reader)
    exec(block("test_scribe.py"), test)
    made: Build = test["scribe"]
    return made


@pytest.mark.parametrize("check", CHECKS)
def test_the_reader_of_the_manual_keeps_all_promises(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(build(monkeypatch))


@pytest.mark.parametrize(
    ("before", "after", "promise", "words"),
    [
        ('"aborted": RunState.CANCELED', '"aborted": RunState.ENDED', "the_story_is_the_tree", "the tree has"),
        ("parent_session=parent", "parent_session=None", "the_story_is_the_tree", "shop.api"),
        (
            "self.trouble = None\n        runs",
            'self.trouble = "x"\n        runs',
            "the_story_is_the_tree",
            "not read: ['scribe: x']",
        ),
        (
            "sessions = len(self._runs) - children",
            "sessions = 7",
            "what_a_human_began_is_counted_apart",
            "(7, 4) are counted",
        ),
        (" if run != self._runs.get(key)", "", "it_grows_alike", "though nothing has changed"),
        ("updated_at=last", "updated_at=last + len(self._runs)", "it_grows_alike", "another tree"),
        (
            "Change(key, None) for key in self._runs.keys() - runs.keys()",
            "Change(key, None) for key in ()",
            "what_is_removed_takes_its_tasks_with_it",
            "what was removed is still there",
        ),
        (
            "except (OSError, ValueError, LookupError,",
            "except (OSError, ValueError,",
            "it_bears_garbage",
            "scribe: cannot be used (KeyError",
        ),
        (
            "runs = {path.stem",
            '(self._store / "seen").touch()\n        runs = {path.stem',
            "nothing_is_written_or_locked",
            "something in the store was changed",
        ),
        ("return next((text", "return None and next((text", "every_text_is_found_again", "texts are not found again"),
    ],
)
def test_a_reader_that_breaks_a_promise_fails_its_check(
    before: str, after: str, promise: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (check,) = (one for one in CHECKS if one.__name__ == promise)
    with pytest.raises(AssertionError) as raised:
        check(build(monkeypatch, before, after))
    assert words in str(raised.value)
