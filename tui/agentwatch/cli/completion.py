"""Print a script that makes a shell complete commands, options, task ids, modes, rules, agents and themes.
With -- WORD ..., print what the last word of a command line could be.
"""

from __future__ import annotations

import io
import os
import re
import signal
from argparse import SUPPRESS, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.cli.command import Argument, argument
from agentwatch.cli.registry import COMMANDS, load_command
from agentwatch.config import config_directory, load
from agentwatch.manual import schemas, topics
from agentwatch.text import clean, exact, say

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

# No library does this: shtab writes what cannot ask for task ids and knows no fish, argcomplete wants one parser that
# holds all the others and runs the whole command line for each word.
#
# The ids of tasks come from agents. To the shell they are data: what it could not print stands for nothing, none looks
# like an option, and bash, which inserts what it gets as it is, gets them quoted.

ARGUMENTS: Final = (
    argument("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
    argument("words", "WORDS", SUPPRESS, nargs="*", default=()),
)
USAGE: Final = "agentwatch completion [-h] SHELL [-- WORDS ...]"
_SECONDS: Final = 3.0
"""After a key was pressed, nobody waits longer for an answer."""
_WORDS: Final = 80
_PLAIN: Final = re.compile(r"([^\w./@%+,=:-])")

_SCRIPTS: Final = {
    "bash": r"""# To have it in every shell, put into ~/.bashrc: eval "$(agentwatch completion bash)"
_agentwatch() {
  local found
  COMPREPLY=()
  while IFS= read -r found; do
    COMPREPLY+=("$found")
  done < <(command agentwatch completion bash -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2> /dev/null)
}
complete -o default -F _agentwatch agentwatch""",
    "zsh": r"""#compdef agentwatch
# To have it in every shell, put into ~/.zshrc: eval "$(agentwatch completion zsh)"
_agentwatch() {
  local line
  local -a found shown
  while IFS= read -r line; do
    found+=("${line%%$'\t'*}")
    shown+=("${line/$'\t'/  }")
  done < <(command agentwatch completion zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)
  if (( $#found )); then compadd -l -d shown -a -- found; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
if [[ $funcstack[1] == _agentwatch ]]; then _agentwatch "$@"; else compdef _agentwatch agentwatch; fi""",
    "fish": r"""# To have it in every shell, put into ~/.config/fish/config.fish: agentwatch completion fish | source
function __agentwatch_words
    set -l before (commandline -opc)
    set -e before[1]
    set -l last (commandline -ct)
    set -l found (command agentwatch completion fish -- $before "$last" 2> /dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path "$last"
    end
end
complete -c agentwatch -f -a '(__agentwatch_words)'""",
}


def run(options: Namespace) -> int:
    """Print the script, or the offers."""
    if options.end:
        return offer(options.shell, options.words)
    say(_SCRIPTS[options.shell])
    return 0


def offer(shell: str, words: Sequence[str]) -> int:
    """Print what the last of the words behind `agentwatch` could be, one a line, nothing where nothing is known.

    Behind a tab stands what it is. bash gives its line and what it breaks words at. Returns 0 and complains of nothing,
    whatever happens; ends by itself after a while.
    """
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    with redirect_stderr(io.StringIO()):
        try:
            if shell == "bash":
                lines = list(_bash(*words))
            else:
                lines = [f"{word}\t{clean(said, _WORDS)}" if said else word for word, said in _offered(words)]
        except Exception:  # noqa: BLE001  a prompt is no place for it
            lines = []
    signal.setitimer(signal.ITIMER_REAL, 0)
    if lines:
        say("\n".join(lines))
    return 0


def _bash(text: str, breaks: str) -> Iterator[str]:
    words, cut, quote = _read(text, breaks)
    for word, _ in _offered(words[1:]):
        if not quote:
            yield _PLAIN.sub(r"\\\1", word[cut:])
        elif not set(word) & ({"'"} if quote == "'" else set('"$`\\!')):
            yield word[cut:]


def _read(text: str, breaks: str) -> tuple[list[str], int, str]:
    """The words of a line of bash up to the cursor; how much of the last one bash keeps; the quote that is open.

    Raises ValueError where the last word is quoted in part.
    """
    words, word, quote, is_escaped, cut, started, was_quoted = list[str](), "", "", False, 0, False, False
    for character in text:
        if is_escaped or (quote and character not in {quote, "\\" if quote == '"' else quote}):
            word, is_escaped = word + character, False
        elif character == "\\":
            is_escaped = started = True
        elif quote:
            quote, was_quoted = "", True
        elif character in "'\"":
            was_quoted, quote, started = was_quoted or started, character, True
        elif character in " \t\n":
            if started:
                words.append(word)
            word, cut, started, was_quoted = "", 0, False, False
        else:
            word, started = word + character, True
            cut = len(word) if character in breaks else cut
    if was_quoted:
        raise ValueError(text)
    return [*words, word], cut, quote


def _offered(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word that the last one could be, and its meaning."""
    *before, last = words or [""]
    if before and before[0] in COMMANDS and before[0]:
        known = _of(before[0], before[1:], last)
    elif before or last.startswith("-"):
        known = _of("", before, last)
    else:
        known = chain(((name, text) for name, text in COMMANDS.items() if name), _look_up("hosts", {}))
    return ((word, text) for word, text in known if word.startswith(last) and word == exact(word))


def _of(command: str, before: Sequence[str], last: str) -> Iterable[tuple[str, str]]:
    arguments: Sequence[Argument] = load_command(command).ARGUMENTS
    options = {name: one for one in arguments if one.is_option for name in one.names}
    places = [one for one in arguments if not one.is_option]
    given, wanted, ended = dict[str, str](), None, False
    for word in before:
        name, _, value = word.partition("=")
        if wanted is not None:
            given[wanted.names[0]], wanted = word, None
        elif word == "--" and not ended:
            ended = True
        elif not ended and name in options:
            given[options[name].names[0]] = value
            wanted = None if value or "metavar" not in options[name].options else options[name]
        elif places:
            # Of those that may be many, the last stays.
            given[places[0].names[0]] = word
            places = places[0 if places[0].options.get("nargs") == "+" else 1 :]
    name, is_value, _ = last.partition("=")
    if wanted is not None:
        return _values(wanted, given, last)
    if not ended and is_value and name in options:
        return ((f"{name}={word}", text) for word, text in _values(options[name], given, last[len(name) + 1 :]))
    if not ended and (last.startswith("-") or not places):
        chosen = {one.ways for one in arguments if one.names[0] in given} - {None}
        return [
            (one.names[0], one.options["help"])
            for one in arguments
            if one.is_option and one.names[0] not in given and one.ways not in chosen
        ]
    return _values(places[0], given, last) if places else ()


def _values(argument: Argument, given: Mapping[str, str], last: str) -> Iterable[tuple[str, str]]:
    if argument.choices:
        return ((choice, "") for choice in argument.choices)
    known = _look_up(argument.offers, {**given, argument.names[0]: last})
    # A word that looks like an option would be one.
    return ((word, text) for word, text in known if not word.startswith("-"))


def _monitor() -> Monitor:
    from agentwatch.composition import scanned

    return scanned(Path.cwd(), load(), inspects=False, requests=True)


def _look_up(kind: str, given: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Candidates for an argument, each with its meaning; `given` are the arguments before it."""
    match kind:
        case "tasks":
            tasks = [task for task in _monitor().tree.tasks.values() if task.task_id.startswith(given["task"])]
            # Who needs the operator is meant, if any of them can be.
            tasks = [task for task in tasks if task.needs_operator] or tasks
            return ((task.task_id, f"{task.state}: {task.title}") for task in tasks)
        case "hosts":
            return ((name, ", ".join(addresses)) for name, addresses in load().hosts)
        case "requests":
            from agentwatch.composition import inbox_of

            known = inbox_of(Path.cwd()).store.read()
            return ((one.request_id, f"{one.tool} {one.shown}") for one in known if one.can_answer)
        case "modes":
            from agentwatch.decisions.policy import offered_modes

            monitor = _monitor()
            known_tasks, purposes = monitor.tree.tasks, dict(monitor.settings.modes)
            modes = offered_modes(known_tasks.get(given.get("task", "")), known_tasks.values(), purposes)
            return ((mode, purposes.get(mode, "")) for mode in modes)
        case "rules":
            from agentwatch.cli.rules import every_rule

            return ((rule.id, rule.title) for rule in every_rule().values())
        case "schemas":
            return ((name, "") for name in schemas())
        case "topics":
            return ((topic, "") for topic in (*topics(), *filter(None, COMMANDS)))
        case "themes":
            from agentwatch.app.theming import theme_names

            return ((name, "") for name in sorted(theme_names(config_directory() / "themes")))
    return ()
