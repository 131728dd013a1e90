"""The operator's own keys: which hold, what is said of the others, and that everything on the screen follows them."""

import pytest

from agentwatch.app.actions import COMMANDS, HELP, KEPT, key_of, textual_keymap, with_keys
from agentwatch.config import Settings
from agentwatch.delegation.decision import Action
from tests.app.deciding import FAILED, office


def mine(**wishes: str | tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Wishes; a double underscore stands for a dot."""
    return tuple((name.replace("__", "."), (keys,) if isinstance(keys, str) else keys) for name, keys in wishes.items())


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("r", "r"), ("R", "R"), ("?", "?"), (",", "comma"), ("é", "é"), ("ctrl+r", "ctrl+r"), ("esc", "escape"),
        ("f5", "f5"), ("⇧tab", "shift+tab"), ("alt+1", "alt+1"), ("", None), ("rr", None), ("strg+r", None),
        ("ctrl+", None), ("f999", None), ("\x1b", None), ("a\nb", None),
    ],
)  # fmt: skip
def test_a_key_is_known_by_the_names_that_people_write(word, key):
    assert key_of(word) == key


def test_every_action_has_keys_that_there_are_and_a_sentence():
    assert all(key_of(key) == key for command in COMMANDS.values() for key in command.keys)
    assert {name for some in HELP.values() for name in some} == COMMANDS.keys()
    assert (with_keys(()), textual_keymap(COMMANDS)) == ((COMMANDS, []), {})


def test_a_wish_takes_the_place_of_the_default_and_one_of_another_place_is_free():
    tabs = tuple(f"alt+{number}" for number in range(1, 9))
    made, faults = with_keys(mine(decide__retry="ctrl+r", timeline=("t", "f9"), tabs=tabs, timeline__idle="m"))
    changes = textual_keymap(made)
    assert not faults
    assert (changes["decide.retry"], changes["timeline"], changes["tabs.6"]) == ("ctrl+r", "t,f9", "alt+7")


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (mine(decide__retri="x"), "there is no command “decide.retri”; did you mean decide.retry?"),
        (mine(open="enterr"), "“enterr” is no key; write one such as x, R, ctrl+r, f5 or pageup; it keeps enter"),
        (mine(tabs="x"), "it needs a list of 8 different keys, one for each of its numbers; it keeps 1–8"),
        (mine(dialog__edit="e"), "characters are needed where you write; take another key, such as ctrl+r or f9"),
        (mine(decide__retry="e"), "decide.retry and decide.escalate would both have the key e; give one"),
        (mine(decide__retry="n"), "decide.retry and needs.next would both have the key n"),
        (mine(follow="ctrl+c"), "follow and quit would both have the key ^c"),
        (mine(dialog__edit="ctrl+s"), "dialog.edit and dialog.record would both have the key ^s"),
    ],
)
def test_what_is_wrong_is_said_and_the_defaults_stay(wishes, words):
    made, (fault,) = with_keys(wishes)
    assert fault.partition(": ")[0].endswith("config.toml")
    assert words in fault
    assert made == COMMANDS


def test_what_takes_the_default_of_one_that_falls_back_falls_back_too_and_the_rest_holds():
    made, faults = with_keys(mine(decide__retry="e", decide__escalate="x", follow="F"))
    assert len(faults) == 2
    assert textual_keymap(made) == {"follow": "F"}


@pytest.mark.parametrize("command_id", KEPT)
def test_the_way_to_decide_and_the_ways_out_stay(command_id):
    made, _ = with_keys([(command_id, ("f9",))])
    assert textual_keymap(made) == {command_id: f"f9,{KEPT[command_id]}"}


async def test_the_dialog_follows_and_ctrl_s_stays(tmp_path):
    keys = mine(decide__abort="ctrl+x", dialog__record="f9", dialog__instead=("f7", "f8", "f10", "f11", "f12"))
    async with office(tmp_path, FAILED, settings=Settings(keys=keys)) as s:
        await s.open("ctrl+x")
        assert s.dialog.case.action is Action.ABORT
        assert "f9 record" in s.text()
        await s.press("f7")
        await s.until(lambda: s.dialog.case.action is Action.RETRY)
