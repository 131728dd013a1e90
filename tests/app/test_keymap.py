"""The operator's own keys: which hold, what is said of the others, and that everything on the screen follows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.app.deciding import FAILED, office
from tests.app.stage import Stage, stage

from agentwatch.app.actions import COMMANDS
from agentwatch.app.actions.keymap import KEPT, Keymap, key_of, keymap
from agentwatch.config import Settings
from agentwatch.delegation.decision import Action


def keys_of(made: Keymap, command_id: str) -> str:
    return next(command.keys for command in made.commands if command.id == command_id)


def mine(**wishes: str | tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Wishes; a double underscore stands for a dot."""
    return tuple((name.replace("__", "."), (keys,) if isinstance(keys, str) else keys) for name, keys in wishes.items())


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("r", "r"), ("R", "R"), ("shift+r", "R"), ("?", "?"), ("+", "+"), (",", "comma"), (" ", "space"),
        ("ctrl+r", "ctrl+r"), ("Ctrl+R", "ctrl+r"), ("^r", "ctrl+r"), ("^", "^"), ("esc", "escape"), ("F5", "f5"),
        ("shift+alt+left", "alt+shift+left"), ("⇧tab", "shift+tab"), ("ctrl+i", "tab"), ("ctrl+[", "escape"),
        ("alt+1", "alt+1"), ("pgup", "pageup"), ("é", "é"),
        ("", None), ("rr", None), ("hyper", None), ("strg+r", None), ("ctrl+", None), ("f99", None), ("\x1b", None),
        ("ctrl+ctrl", None), ("a\nb", None), ("ctrl++", None),
    ],
)  # fmt: skip
def test_a_key_is_known_by_the_names_that_people_write(word: str, key: str | None) -> None:
    assert key_of(word) == key


def test_every_default_is_a_key_by_its_own_name() -> None:
    for command in COMMANDS:
        for key in command.keys.split(" "):
            assert key_of(key) == key, command.id


def test_without_wishes_all_is_as_it_is() -> None:
    assert keymap(()) == Keymap(COMMANDS)
    assert not keymap(()).changes


def test_a_wish_takes_the_place_of_the_default() -> None:
    made = keymap(
        mine(decide__retry="ctrl+r", timeline=("t", "f9"), tabs=tuple(f"alt+{number}" for number in range(1, 9)))
    )
    assert keys_of(made, "decide.retry") == "ctrl+r"
    assert made.changes["timeline"] == "t,f9"
    assert made.changes["tabs.6"] == "alt+7"


def test_a_key_of_another_place_is_free() -> None:
    assert keymap(mine(timeline__idle="m")).faults == ()
    assert keymap(mine(replay__step="a")).faults != ()


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (mine(decide__retri="x"), "there is no command “decide.retri”; did you mean decide.retry?"),
        (mine(nothing="x"), "there is no command “nothing”; `agentwatch help keys` has all"),
        (
            mine(open="enterr"),
            "“enterr” is no key; write one such as x, R, ctrl+r, f5 or pageup; it keeps enter",
        ),
        (mine(tabs="x"), "it needs a list of 8 different keys, one for each of its numbers; it keeps 1–8"),
        (mine(dialog__edit="e"), "“e” is needed where you write; take another, such as ctrl+r or f9; it keeps ^e"),
        (mine(filter__earlier="left"), "“←” is needed where you write"),
        (mine(palette=","), "“,” is needed where you write"),
        (mine(decide__retry="e"), "decide.retry and decide.escalate would both have the key e in the tree; give one"),
        (mine(follow="q"), "follow and quit would both have the key q in the tree"),
        (mine(follow="ctrl+c"), "follow and quit would both have the key ^c in the tree"),
        (mine(dialog__edit="ctrl+s"), "dialog.record and dialog.edit would both have the key ^s in a decision"),
        (mine(dialog__edit="ctrl+p"), "dialog.edit and palette would both have the key ^p in a decision"),
        (mine(filter__down="ctrl+z"), "filter.down and suspend would both have the key ^z in the filter line"),
        (mine(inspect__switch="c"), "inspect.switch and copy would both have the key c in an inspected file"),
        (mine(replay__step="q"), "replay.step and quit would both have the key q in the tree"),
    ],
)
def test_what_is_wrong_is_said_and_the_defaults_stay(
    wishes: tuple[tuple[str, tuple[str, ...]], ...], words: str
) -> None:
    made = keymap(wishes)
    (fault,) = made.faults
    assert fault.command_id == wishes[0][0]
    assert words in fault.words
    assert str(fault).partition(": ")[0].endswith("config.toml")
    assert made.commands == COMMANDS


def test_of_a_clash_both_keep_what_they_had_and_the_rest_holds() -> None:
    made = keymap(mine(decide__retry="ctrl+r", decide__abort="ctrl+r", follow="F"))
    assert {fault.command_id for fault in made.faults} == {"decide.retry", "decide.abort"}
    assert keys_of(made, "decide.retry") == "r"
    assert keys_of(made, "follow") == "F"


def test_what_takes_the_default_of_one_that_falls_back_falls_back_too() -> None:
    made = keymap(mine(decide__retry="e", decide__escalate="x"))
    assert {fault.command_id for fault in made.faults} == {"decide.retry", "decide.escalate"}
    assert made.commands == COMMANDS


@pytest.mark.parametrize("command_id", KEPT)
def test_the_way_to_decide_and_the_ways_out_stay(command_id: str) -> None:
    made = keymap([(command_id, ("f9",))])
    assert keys_of(made, command_id) == f"f9 {KEPT[command_id]}"


def told(s: Stage) -> list[str]:
    """What has been notified."""
    return [notification.message for notification in s.app._notifications]


async def test_a_wrong_wish_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "agentwatch").mkdir()
    (tmp_path / "agentwatch" / "config.toml").write_text("[keys]\nfollow = 'q'\n", "utf-8")
    async with stage(settings=Settings(keys=mine(follow="q"))) as s:
        await s.until(lambda: any("config.toml:2: follow and quit would both have the key q" in one for one in told(s)))
        await s.press("f")
        assert s.tree.follows
        await s.press("!")
        await s.until(lambda: "would both have the key q" in " ".join(s.text().replace("│", " ").split()))


async def test_the_dialog_follows_and_ctrl_s_stays(tmp_path: Path) -> None:
    keys = mine(decide__abort="ctrl+x", dialog__record="f9", dialog__instead=("f7", "f8", "f10", "f11", "f12"))
    async with office(tmp_path, FAILED, settings=Settings(keys=keys)) as s:
        await s.open("ctrl+x")
        assert s.dialog.case.action is Action.ABORT
        assert "f9 record" in s.text()
        await s.press("f7")
        await s.until(lambda: s.dialog.case.action is Action.RETRY)
