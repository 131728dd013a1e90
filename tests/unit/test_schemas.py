"""All JSON that is printed and written follows its published schema: no key is missing, and none is unknown."""

import base64
import json
import math
import time
import tomllib
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentwatch.cli import run
from agentwatch.cli.log import log_document
from agentwatch.config import SETTINGS, Settings, load
from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.history.log import StateChanges
from agentwatch.manual import read_page, schema_names, topic_names
from agentwatch.requests.store import RequestStore
from tests.generate import MANUAL, SCHEMAS
from tests.homes import live_in
from tests.unit.agents.documents import packet, returned
from tests.unit.delegation.events import tree_of
from tests.unit.history.recorded import Workspace
from tests.unit.history.recorded import packet as handed
from tests.unit.history.test_log import ROOT as SESSION
from tests.unit.history.test_log import ran
from tests.unit.requests.asked import question, request


def closed(schema: Any) -> Any:
    """Return a schema that allows only the keys that it names, as our own documents have no others."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **made} if isinstance(schema.get("properties"), dict) else made


STRICT = {name: Draft202012Validator(closed(schema)) for name, schema in SCHEMAS.items()}


def check(name: str, document: object):
    """Check a document against a schema, in the way of a reader of its JSON."""
    read = json.loads(json.dumps(document))
    faults = [f"{fault.json_path}: {fault.message[:300]}" for fault in STRICT[name].iter_errors(read)]
    assert faults == []


@pytest.fixture
def shop(tmp_path, monkeypatch):
    live_in(tmp_path / "home", monkeypatch)
    made = tmp_path / "shop"
    made.mkdir()
    (made / "a.handoff.json").write_text(packet(task_id="a"))
    (made / "a.return.md").write_text(returned())
    (made / "b.return.md").write_text("## Status\nstate: SUCCESS\n")
    return made


@pytest.fixture
def printed(capsys):
    """Return a function that runs a command, and returns the JSON that it prints."""

    def of(*words: object) -> Any:
        capsys.readouterr()
        run([*map(str, words)])
        return json.loads(capsys.readouterr().out)

    return of


@pytest.mark.parametrize("name", schema_names())
def test_every_published_schema_is_one_and_is_in_the_manual(name, printed):
    document = printed("schema", name)
    Draft202012Validator.check_schema(document)
    assert document == json.loads((MANUAL / f"{name}.schema.json").read_text())
    assert f"`{name}`" in read_page("json").split("## JSON schemas")[1].split("## ")[0]


@pytest.mark.parametrize("name", ["tree", "pending"])
def test_every_command_prints_the_demo_as_its_schema_says(name, shop, printed):
    Player(demo_screenplay().steps, shop).play(math.inf, time.time() - 120.0)
    check(name, printed(name, "--json", shop))


def test_a_lint_a_decision_and_requests_follow_their_schemas(shop, printed):
    (shop / "c.return.json").write_bytes(b"\xff{")
    document = printed("check", "--format", "json", shop)
    assert {one["state"] for one in document["files"]} >= {"submitted", "failed", "invalid"}
    check("check", document)
    run(["decide", "a", str(shop), "--retry", "--note", "x", "--mitigation", "reduced_scope", "--yes"])
    (decision,) = (shop / ".agentwatch" / "decisions").glob("*.json")
    check("decision", json.loads(base64.b64decode(json.loads(decision.read_bytes())["payload"])))
    with RequestStore(shop).offer(request(shop)), RequestStore(shop).offer(question(shop)):
        pending = printed("pending", "--json", shop)
        assert sum(len(task["requests"]) for task in pending["tasks"]) == 2
        check("pending", pending)
        check("tree", printed("tree", "--json", shop))


def test_lines_of_the_log_follow_their_schema():
    kept = Workspace()
    events = [kept.seen("a.handoff.json", handed("a")), kept.seen("b.handoff.json", handed("b")), *ran(SESSION)]
    changes = [*StateChanges(tree_of([]), with_activity=True).apply(events)]
    assert len(changes) >= 3
    for change in changes:
        check("log", log_document(change).to_json())


def test_the_settings_in_the_manual_are_read(tmp_path):
    known, found = {key.partition(".")[0] for key in SETTINGS}, 0
    texts = [part.partition("```")[0] for topic in topic_names() for part in read_page(topic).split("```toml\n")[1:]]
    for text in texts:
        if "[project]" not in text and known & tomllib.loads(text).keys():
            (tmp_path / "config.toml").write_text(text)
            assert load(tmp_path / "config.toml") != Settings()
            found += 1
    assert found >= 3
