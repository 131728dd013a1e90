"""OpenCode's and Kilo's plugin: what it does inside the program, with thousands of requests, answers and accidents."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import agentwatch
from agentwatch.agents.setup import programs
from agentwatch.config import Settings

NODE = shutil.which("node")
HERE = Path(__file__).parent
PLUGIN = Path(agentwatch.__file__).parent / "agents" / "hook" / "opencode.js"
ROUNDS = os.environ.get("AGENTWATCH_PLUGIN", "1000")


def test_what_init_names_is_the_file_that_is_shipped():
    (file,) = programs(Settings())["opencode"].files
    assert PLUGIN.as_uri() in str(file.ours)
    assert PLUGIN.is_file()


@pytest.mark.skipif(NODE is None, reason="there is no node to run a plugin with")
@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_request_gets_the_answer_that_was_given_to_it_or_none(seed):
    """Requests come and go, ids come again, processes die or talk nonsense, lists fail, others answer first: the
    program is told nothing else than was said for that very request, no process is left, and nothing is thrown."""
    assert NODE is not None
    call = [NODE, str(HERE / "opencode_plugin.mjs"), str(PLUGIN), ROUNDS, seed]
    done = subprocess.run(call, capture_output=True, text=True, timeout=600, check=True)
    told = json.loads(done.stdout)
    assert (told.pop("wrong"), done.stderr) == ([], "")
    assert min(told[what] for what in ("asked", "delivered", "elsewhere", "gone", "killed")) > 100
