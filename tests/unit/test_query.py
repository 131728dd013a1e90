"""Queries behind `/`, in saved views and behind `--where`: the tasks that they find, and their errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.events import Claim, Run, RunState, Seen, Verdict
from agentwatch.delegation.task import Attempt, Shown, State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.view.rows import complete_query, parse
from tests.app.scenes import NOW, shop

SHOP = Tree()
for event in shop().take():
    SHOP.apply(event)


def found(query: str) -> list[str]:
    """Return the last parts of the ids of the tasks that a query finds."""
    parsed = parse(query)
    assert not parsed.fault
    return [task_id.rpartition(".")[2] for task_id, task in SHOP.tasks.items() if parsed.matches(task, NOW)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("IMPLEMENT.API", ["api"]),
        ("Auditor", ["security"]),
        ("payment FORM", ["ui"]),
        ('"form payment"', []),
        ("the -build agent:code", ["release"]),
        ("state:fai", ["api"]),
        ("state:INPUT_required", ["security"]),
        ("state:failed,blocked", ["api", "security"]),
        ("state:needs-you", ["api", "security", "metrics"]),
        ("is:asks -state:failed", ["security", "metrics"]),
        ("agent:audit,REVIEW", ["review", "security"]),
        ("-agent:code,planner,architect is:ended", ["review", "metrics"]),
        ("since:15s", ["checkout", "implement", "docs", "release"]),
    ],
)
def test_the_tasks_that_a_query_finds(query, expected):
    assert found(query) == expected


def task(*attempts: Attempt, **fields: object) -> Task:
    return Task("a", "A", attempts=attempts, **fields)  # type: ignore[arg-type]


def ran(**fields: object) -> Attempt:
    told = {"source": "codex", "session_id": "s", "parent_session": None, "state": RunState.WORKING}
    return Attempt(1, run=Run(**{**told, "place": "/p/x.jsonl", "started_at": NOW, "updated_at": NOW, **fields}))  # type: ignore[arg-type]


PACKET = Seen(1, NOW, "h/a.handoff.md", "", Handoff("a", "Do it", mode="architect"), ())
HANDED = Attempt(1, handoff=PACKET)
LIE = Claim("created", "src/api.py", Verdict.CONTRADICTED, "missing")


@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("is:contradicted", task(verdict=Verdict.CONTRADICTED), task(verdict=Verdict.VERIFIED)),
        ("is:verified", task(shown=Shown.COMPLETED, verdict=Verdict.VERIFIED), task(verdict=Verdict.VERIFIED)),
        ("state:completed", task(shown=Shown.COMPLETED), task(shown=Shown.FALSE, state=State.COMPLETED)),
        ("is:silent", task(shown=Shown.SILENT), task(stale=True)),
        ("is:open", task(shown=Shown.BLOCKED), task(shown=Shown.FAILED)),
        ("is:gone", task(shown=Shown.GONE), task(stale=True)),
        ("is:session", task(ran()), task(ran(parent_session="b"))),
        ("since:2h", task(updated_at=NOW - 7_200), task(updated_at=NOW - 7_201)),
        ("source:codex", task(ran()), task(HANDED)),
        ("source:files", task(HANDED), task(ran())),
        ("source:files", task(Attempt(1, returned=PACKET)), task(Attempt(1, handoff=PACKET._replace(stored=True)))),
        ("mode:arch", task(HANDED), task()),
        ("mode:plan", task(ran(mode="planner")), task(ran())),
        ("is:retried", task(ran(), Attempt(2)), task(ran())),
        ("path:h/a.hand", task(HANDED), task()),
        ("path:x.jsonl", task(ran()), task()),
        ("path:src/api", task(claims=(LIE,)), task()),
        ("host:uild1", task(host="build1"), task(host="here")),
    ],
)
def test_the_facts_that_a_query_knows_of_a_task(query, one, other):
    assert [parse(query).matches(each, NOW) for each in (one, other)] == [True, False]
    assert parse("-" + query).matches(other, NOW)


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("stat:failed", "no key “stat”: did you mean state?"),
        ("api soruce:codex", "no key “soruce”: did you mean source?"),
        ("state:fial", "no “state:fial”: try invalid, failed, blocked"),
        ("state:fial soruce:codex", "no “state:fial”: try invalid, failed, blocked"),
        ("is:xyz", "no “is:xyz”: try invalid, failed, blocked"),
        ("state:", "state: needs a value, such as state:failed"),
        ("since:10", "since: needs a time, such as 10m, 2h or 3d"),
        ("since:-3m", "since: needs a time, such as 10m, 2h or 3d"),
    ],
)
def test_an_error_in_a_query_is_explained_and_the_rest_holds(query, fault):
    assert parse(query).fault == fault
    mended = parse(f"form {query} -api")
    assert mended.text == ("form api -api" if query.startswith("api") else "form -api")
    assert not parse(mended.text).fault


def test_words_with_colons_and_in_quotation_marks_are_found():
    for task_id in ("session:41", "claude-code:9f:2", "code:7", "https://x.org/a", ":", "-"):
        for query in map(parse, (task_id, f'"{task_id}"')):
            assert not query.fault
            found = [query.matches(Task(name, name), NOW) for name in (task_id, "other")]
            assert found == [True, False]
    assert parse('"state:failed"').matches(Task("x", "state:failed"), NOW)
    assert parse('"-x"').matches(Task("a-x", "A"), NOW)
    reviewer = parse('agent:"code reviewer"')
    assert [reviewer.matches(task(agent=name), NOW) for name in ("The code reviewer", "code")] == [True, False]


KEYS = ["state", "is", "agent", "since", "source", "mode", "path", "host"]
PIECES = st.sampled_from(
    [*KEYS, *(f"{key}:" for key in KEYS), "-", '"', ",", ":", " ", "failed", "10m", "x", "ß", "\x1b[2J"]
)


@given(st.lists(PIECES | st.text()).map("".join))
def test_every_text_is_a_query(text):
    query = parse(text)
    for one in SHOP.tasks.values():
        query.matches(one, NOW)
    longer = complete_query(text, lambda _key: ["code reviewer", "ß,x", '"'])
    assert longer is None or (longer.startswith(text) and len(longer) > len(text))
    assert not parse(query.text).fault
    assert not parse(query.with_next_state([State.FAILED], 1, asks=True)).fault


def test_the_query_after_this_one_has_another_state_and_all_else():
    states = [State.COMPLETED, State.FAILED]
    assert parse("agent:x  y is:needs-you").with_next_state(states, 1, asks=True) == "agent:x y state:failed"
    assert parse("state:blocked,partial x").with_next_state(states, 1, asks=False) == "x state:failed"


@pytest.mark.parametrize(
    ("text", "longer"),
    [
        ("st", "state:"),
        ("api -so", "api -source:"),
        ("a", None),
        ("state:fa", "state:failed"),
        ("is:N", "is:Needs-you"),
        ("state:failed,bl", "state:failed,blocked"),
        ("since:1", "since:10m"),
        ("agent:co", "agent:code"),
        ('agent:"co', 'agent:"code reviewer'),
        ("mode:co", None),
        ("x ", None),
    ],
)
def test_keys_and_values_are_written_to_their_end(text, longer):
    assert complete_query(text, lambda key: ["code reviewer"] if key == "agent" else []) == longer
