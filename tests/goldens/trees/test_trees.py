"""Lists of steps, and the tree that agentwatch shows after them.

`scenarios/<topic>.txt` holds the lists: each begins with `= name`, and its steps stand on lines of their own, or are
divided by `; `. `Play` does the steps; each takes ten seconds. The golden holds the output of all commands; `tree` is
the last."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.goldens.trees.machine import Machine

SCENARIOS = Path(__file__).parent / "scenarios"
BEGIN = 2_000_000_000.0
"""A time in 2033, later than any time that the file system sets by itself."""
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
WORK = "ROOT_DIR/work"
ARTIFACT = {"type": "plan", "path": "README.md", "summary": "Why."}
COMMANDS = {"tree": ["tree", "--json"], "log": ["log"], "pending": ["pending", "--json"], "text": ["tree"]}


def topics() -> list[Any]:
    """Return all scenarios, with their topic, name and steps."""
    found = []
    for path in sorted(SCENARIOS.glob("*.txt")):
        for one in re.split(r"^= ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, *lines = one.strip().splitlines()
            steps = [step for line in lines for step in ([line] if line.startswith("write ") else line.split("; "))]
            found.append(pytest.param((path.stem, name, steps), id=f"{path.stem}-{name}".replace(" ", "_")))
    return found


def handoff(task_id: str, keys: dict[str, Any]) -> str:
    packet = {
        "handoff_schema": "composability.handoff_packet.v1",
        "task_id": task_id,
        "objective": f"objective of {task_id}",
        "evidence": [{"path": "README.md", "purpose": "Says why.", "required": True}],
        "success_criteria": ["It is done."],
        "risks": [],
        "constraints": [],
        "deliverables": [],
        "dependencies": [],
    }
    return json.dumps({key: value for key, value in (packet | keys).items() if key != "task_id" or value != "-"})


def returned(task_id: str, state: str, keys: dict[str, Any]) -> str:
    lists = {key: keys.pop(key, []) for key in ("files_created", "files_modified", "limitations")}
    status = {"state": state, "summary": "So it went."} | ({"task_id": task_id} if task_id != "-" else {})
    status |= ({"retry_recommended": "yes"} if state == "ERROR" else {}) | keys
    attested = ["runtime_model_reported: small", f"runtime_mode_reported: {keys.get('mode', 'code')}"]
    for key, paths in lists.items():
        attested += [f"{key}:", *(f"- {path}" for path in paths or ["(none)"])] if paths or "files" in key else []
    head = ["## Status", *(f"{key}: {value}" for key, value in status.items())]
    middle = ["", "## Deliverables", "- (none)", "", "## Evidence", "- (none)", "", "## Runtime Attestation"]
    return "\n".join([*head, *middle, *attested, ""])


def meta(status: str, way: str, keys: dict[str, Any]) -> str:
    path = way.split(",")
    metadata = {"session_id": keys.pop("session", "s1"), "duration_seconds": 5, "agent_type": path[-1]}
    metadata = {key: value for key, value in metadata.items() if value is not None} | {
        "delegation_depth": len(path) - 1,
        "delegation_path": path,
    }
    document = {"status": status, "summary": "So it went.", "artifacts": [ARTIFACT], "metadata": metadata}
    if status in ("failed", "blocked", "partial"):
        error = {"type": "timeout", "message": "It took too long.", "recoverable": True, "recommendation": "Wait."}
        document["errors"] = [error]
    return json.dumps(document | keys)


def findings(task_id: str, status: str, keys: dict[str, Any]) -> str:
    head = {"agent_name": "reader", "task_id": task_id, "status": status, "verbosity_level": "detailed"}
    head |= {"confidence_level": 0.8, "token_usage": 1200, "execution_time_seconds": 30, "error_message": None}
    found = {"context_map": [["It is there.", None]]}
    rest = {"recommendations": [], "identified_gaps": [], "blockers": keys.pop("blockers", [])}
    return json.dumps({"report_metadata": head | keys, "findings": found, **rest})


def todos(marks: str) -> str:
    return "# Todos\n\n" + "".join(f"- [{mark.replace('_', ' ')}] step {n}\n" for n, mark in enumerate(marks, 1))


class Play:
    """One scenario on its machine."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.shown: list[Any] = []
        self.write("README.md", "Why.\n")

    def step(self, step: str):
        word, *rest = step.split(" | ") if step.startswith("write ") else shlex.split(step)
        if word.startswith("write "):
            # The text is written unchanged, except for its line ends.
            self.write(word.removeprefix("write "), rest[0].replace("\\n", "\n"))
        else:
            getattr(self, f"do_{word}", self.run_command)(word, *rest)
        self.machine.now += 10

    def place(self, path: str) -> str:
        return path.replace("~", "home", 1) if path.startswith("~") else f"work/{path}"

    def write(self, path: str, text: str):
        self.machine.write(self.place(path), text.encode())

    def document(self, usual: str, words: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
        """Return the path of a document, given as a word with an @, and its keys, given as words with a =."""
        path = next((word[1:] for word in words if word.startswith("@")), usual)
        pairs = (word.split("=", 1) for word in words if not word.startswith("@"))
        return path, {key: yaml.safe_load(value) for key, value in pairs}

    def do_handoff(self, _: str, task_id: str, *words: str):
        path, keys = self.document(f"{task_id}.handoff.json", words)
        self.write(path, handoff(task_id, keys))

    def do_return(self, _: str, task_id: str, state: str, *words: str):
        path, keys = self.document(f"{task_id}.return.md", words)
        self.write(path, returned(task_id, state, keys))

    def do_meta(self, _: str, path: str, status: str, way: str, *words: str):
        self.write(path, meta(status, way, self.document("", words)[1]))

    def do_findings(self, _: str, task_id: str, status: str, *words: str):
        path, keys = self.document(f"{task_id}.report.json", words)
        self.write(path, findings(task_id, status, keys))

    def do_todos(self, _: str, path: str, marks: str):
        self.write(path, todos(marks))

    def do_delete(self, _: str, path: str):
        place = self.machine.root / self.place(path)
        shutil.rmtree(place) if place.is_dir() else place.unlink()

    def do_move(self, _: str, old: str, new: str):
        place = self.machine.root / self.place(new)
        place.parent.mkdir(parents=True, exist_ok=True)
        (self.machine.root / self.place(old)).rename(place)

    def do_touch(self, _: str, path: str):
        self.machine.touch(self.machine.root / self.place(path))

    def do_link(self, _: str, path: str, target: str):
        (self.machine.root / self.place(path)).symlink_to(target)

    def do_wait(self, _: str, span: str, *more: str):
        if more:
            self.run_command("wait", span, *more)
            return
        self.machine.now += int(span[:-1]) * SECONDS[span[-1]]

    def do_watch(self, _: str, workspace: str = "work"):
        self.machine.watch(workspace)

    def do_see(self, _: str, workspace: str = "work"):
        self.machine.watch(workspace, checks=True)

    def do_many(self, _: str, count: str, *words: str):
        for number in range(int(count)):
            self.step(shlex.join(words).replace("#", str(number)))

    def do_end(self, _: str, count: str, *words: str):
        """Show the last lines that a command prints."""
        self.run_command(*words)
        self.shown[-1] = {key: lines[-int(count) :] for key, lines in self.shown[-1].items()}

    def do_git(self, *words: str):
        date = {f"GIT_{who}_DATE": "2033-05-18T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
        names = {f"GIT_{who}_{what}": "kim@host" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = os.environ | date | names | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(words, cwd=self.machine.root / "work", env=environment, check=True, capture_output=True)

    def run_command(self, word: str, *rest: str):
        """Run the command of agentwatch that any other word names, in the workspace if no other path is given."""
        words = [*COMMANDS.get(word, [word]), *rest]
        if word != "keys" and not any("ROOT_DIR" in one for one in rest):
            words.append(WORK)
        self.shown.append({"$ " + " ".join(words).removesuffix(" " + WORK): anonymous(self.machine.shown(*words))})


def anonymous(shown: Any) -> Any:
    """Return the output of a command without ids that depend on the workspace's path or on a key."""
    text = re.sub(r"\b[0-9a-f]{32}\b|(?<=work-)[0-9a-f]{16}\b", "{id}", json.dumps(shown))
    return json.loads(re.sub(r"(?<=fingerprint  )[0-9a-f]{64}", "{key}", text))


@pytest.mark.parametrize("scenario", topics())
def test_trees(scenario, tmp_path, monkeypatch, golden):
    topic, name, steps = scenario
    play = Play(Machine(tmp_path, monkeypatch, BEGIN))
    for step in steps:
        play.step(step)
    if steps[-1] != "tree" and not steps[-1].startswith("end "):
        play.step("tree")
    golden.check(f"trees/{topic}.json", play.shown, name)
