"""The command that completes command lines in shells."""

import io
import os
import signal
from argparse import SUPPRESS, Namespace
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from pathlib import Path

from agentwatch.cli.command import COMMANDS, argument, command, load_command
from agentwatch.text import clean, clean_name, print_text

# No library fits. shtab cannot complete task ids and does not support fish. argcomplete needs one parser with all
# subparsers, and runs the whole program for each word.
#
# Agents choose task ids, so a shell must treat the ids as data. Ids that cannot be printed or look like an option are
# left out. The script for bash quotes ids, because bash inserts completions unchanged.

_LIMIT_SECONDS = 3.0  # a user does not wait longer for completions

_SCRIPTS = {
    "bash": r"""# To have it in every shell, put into ~/.bashrc: eval "$(agentwatch completion bash)"
COMP_WORDBREAKS=${COMP_WORDBREAKS//:}
_agentwatch() {
  local found
  COMPREPLY=()
  while IFS= read -r found; do
    COMPREPLY+=("$(printf %q "${found%%$'\t'*}")")
  done < <(command agentwatch completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
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


@command(
    argument("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
    argument("words", "WORDS", SUPPRESS, nargs="*", default=()),
)
def completion(options: Namespace) -> int:
    """Print a script that makes a shell complete commands, options, task ids and topics.
    With -- WORD ..., print the possible values of the last word of a command line.
    """
    if not options.end:
        print_text(_SCRIPTS[options.shell])
        return 0
    # This runs while the user types: print no error, and stop after a while.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_SECONDS)
    with redirect_stderr(io.StringIO()):
        try:
            lines = [f"{word}\t{clean(text, 80)}" if text else word for word, text in _complete_last(options.words)]
        except Exception:  # noqa: BLE001  a traceback would spoil the prompt
            lines = []
    signal.setitimer(signal.ITIMER_REAL, 0)
    for line in lines:
        print_text(line)
    return 0


def _complete_last(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the completions of the last word, each with its meaning."""
    *before, last = words or [""]
    known: Iterable[tuple[str, str]] = COMMANDS.items()
    if before and before[0] in COMMANDS:
        known = _complete_argument(before[0], before[1:], last)
    elif before or last.startswith("-"):
        known = _complete_argument("", before, last)
    return [(word, text) for word, text in known if word and word.startswith(last) and word == clean_name(word)]


def _complete_argument(name: str, before: Sequence[str], last: str) -> Iterable[tuple[str, str]]:
    arguments = load_command(name).arguments
    options = {name: one for one in arguments if one.is_option for name in one.names}
    positionals = [one for one in arguments if not one.is_option]
    pending_option, position = None, 0
    for word in before:
        if not pending_option and word in options:
            pending_option = options[word] if "metavar" in options[word].options else None
        else:
            position, pending_option = position + (not pending_option), None
    if not pending_option and (last.startswith("-") or not positionals):
        return [(name, one.options["help"]) for name, one in options.items() if name not in before]
    completed = pending_option or positionals[min(position, len(positionals) - 1)]
    known = [(choice, "") for choice in completed.options.get("choices", ())] or _argument_values(completed.names[0])
    # Leave out words that begin with a dash: the command would read them as options.
    return [(word, text) for word, text in known if not word.startswith("-")]


def _argument_values(name: str) -> list[tuple[str, str]]:
    """Return the possible values of the argument `name`, each with its meaning."""
    from agentwatch.composition import build_inbox, scan_workspace
    from agentwatch.config import load
    from agentwatch.manual import topic_names

    if name == "--where":
        from agentwatch.view.rows import constant_terms

        return [(term, "") for term in constant_terms()]
    if name == "topic":
        return [(topic, COMMANDS.get(topic, "")) for topic in (*topic_names(), *COMMANDS)]
    if name == "request":
        return [(one.request_id, one.shown) for one in build_inbox(Path.cwd()).store.read() if one.is_answerable]
    if name == "task":
        tasks = scan_workspace(Path.cwd(), load(), inspects=False, requests=True).tree.tasks.values()
        # Tasks that need the operator come first if the shell keeps the order.
        first = sorted(tasks, key=lambda one: not one.ask)
        return [(one.task_id, f"{one.shown.word}: {one.title}") for one in first]
    return []
