"""The roles of `.agents/`: who asked for whom, how far they are, and how they ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import TodoStatus
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.teamwork.teamwork_reader import TeamworkReader

FIRST = "0b51f1f0-0000-4000-8000-00000000000a"
SECOND = "0b51f1f0-0000-4000-8000-00000000000b"
HUMAN = "0b51f1f0-0000-4000-8000-00000000000c"
WRITTEN = 1_790_000_000.0

PROGRESS = """# Progress

## Current Status
Last visited: 2026-09-21T13:20:00Z

- [x] Read the request
- [-] Draw the map
- [ ] Hand it over
"""


def briefing(parent: str = "", *, roster: str = "", rest: str = "") -> str:
    current = f"\n## Current Parent\n- Conversation ID: {parent}\n- Updated: not yet\n" if parent else ""
    table = "\n## Team Roster\n| Agent | Type | Work Item | Status | Conv ID |\n|---|---|---|---|---|\n"
    return f"# BRIEFING\n\n## My Identity\n- Archetype: surveyor\n{rest}{current}{table + roster if roster else ''}"


class Team:
    """A workspace with roles, and a reader of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.reader = TeamworkReader(root)
        self.runs: dict[str, Run] = {}

    def write(self, role: str, at: float = WRITTEN, **files: str) -> None:
        directory = self.root / ".agents" / role
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = directory / f"{name}.md"
            path.write_text(text, encoding="utf-8")
            os.utime(path, (at, at))

    def read(self) -> list[str]:
        changes = self.reader.read(1)
        for change in changes:
            if change.run is None:
                del self.runs[change.key]
            else:
                self.runs[change.key] = change.run
        return [change.key for change in changes]


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def test_a_role_is_a_run_with_its_request_its_checklist_and_its_handoff(team: Team) -> None:
    team.write("mapper", ORIGINAL_REQUEST="## 2026-09-21T13:00:00Z\nDraw a map.\n", BRIEFING=briefing())
    team.write("mapper", progress=PROGRESS)
    team.read()
    run = team.runs["mapper"]
    assert (run.source, run.session_id, run.title, run.agent) == ("teamwork", "mapper", "mapper", "surveyor")
    assert (run.state, run.started_at, run.updated_at) == (RunState.WORKING, 1_789_995_600.0, WRITTEN)
    assert run.place == str(team.root / ".agents" / "mapper")
    assert run.prompt is not None
    assert "Draw a map." in (team.reader.text(run.prompt.digest) or "")
    assert run.todos is not None
    assert [todo.status for todo in run.todos] == [TodoStatus.DONE, TodoStatus.IN_PROGRESS, TodoStatus.PENDING]
    team.write("mapper", WRITTEN + 60, handoff="# Handoff\nThe map is drawn.\n")
    assert team.read() == ["mapper"]
    run = team.runs["mapper"]
    assert (run.state, run.ended_at) == (RunState.ENDED, WRITTEN + 60)
    assert run.said is not None
    assert team.reader.text(run.said.digest) == "# Handoff\nThe map is drawn.\n"
    assert team.read() == []


def test_a_role_that_was_only_asked_is_submitted(team: Team) -> None:
    team.write("mapper", DISPATCH="Draw a map.\n")
    team.read()
    assert team.runs["mapper"].state is RunState.SUBMITTED
    assert team.runs["mapper"].prompt is not None


def test_a_directory_with_none_of_the_files_is_no_role(team: Team) -> None:
    team.write("notes", info="Nothing here.")
    (team.root / ".agents" / "README.md").write_text("# Agents")
    assert team.read() == []
    assert list(team.reader.found()) == []


def test_a_conversation_is_known_by_the_timers_of_its_role(team: Team) -> None:
    team.write("lead", BRIEFING=briefing(HUMAN, rest=f"- Heartbeat cron: {FIRST}/task-11\n"))
    team.write("mapper", BRIEFING=briefing(FIRST))
    team.read()
    assert team.runs["mapper"].parent_session == "lead"
    assert team.runs["mapper"].link == "the parent that its BRIEFING.md names"
    assert team.runs["lead"].parent_session is None


def test_a_roster_tells_its_roles_and_those_that_name_the_same_parent(team: Team) -> None:
    roster = f"| Mapper M1 | teamwork_preview_worker | Map | in-progress | {SECOND} |\n"
    team.write("lead", BRIEFING=briefing(HUMAN, roster=roster))
    team.write("other_lead", BRIEFING=briefing(HUMAN, roster="| nobody | x | y | completed | |\n"))
    team.write("teamwork_preview_mapper_m1", BRIEFING=briefing(FIRST))
    team.write("surveyor", BRIEFING=briefing(FIRST))
    team.write("helper", BRIEFING=briefing(SECOND))
    team.read()
    parents = {name: run.parent_session for name, run in team.runs.items()}
    assert parents == {
        "lead": None,
        "other_lead": None,
        "teamwork_preview_mapper_m1": "lead",
        "surveyor": "lead",
        "helper": "teamwork_preview_mapper_m1",
    }


def test_a_role_that_started_an_orchestrator_is_its_parent(team: Team) -> None:
    team.write("sentinel", BRIEFING=briefing(rest=f"- Orchestrator: {FIRST} (running)\n"))
    team.write("lead", BRIEFING=briefing(HUMAN, rest=f"- Heartbeat cron: {FIRST}/task-3\n"))
    team.read()
    assert team.runs["lead"].parent_session == "sentinel"


def test_whoever_started_the_one_who_started_the_others_is_found_in_any_order(team: Team) -> None:
    team.write("a_sentinel", BRIEFING=briefing(rest=f"- Orchestrator: {FIRST}\n- Victory Auditor: {SECOND}\n"))
    team.write("lead", BRIEFING=briefing(HUMAN, roster="| mapper | w | Map | completed | |\n"))
    team.write("mapper", BRIEFING=briefing(FIRST))
    team.write("victory_auditor", BRIEFING=briefing(HUMAN))
    team.read()
    parents = {name: run.parent_session for name, run in team.runs.items()}
    assert parents == {"a_sentinel": None, "lead": "a_sentinel", "mapper": "lead", "victory_auditor": "a_sentinel"}


def test_an_orchestrator_that_names_itself_is_the_child_of_whoever_started_it(team: Team) -> None:
    team.write("lead", BRIEFING=briefing(FIRST, roster="| Someone | w | Map | in-progress | |\n"))
    team.write("mapper", BRIEFING=briefing(FIRST))
    team.write("sentinel", BRIEFING=briefing(rest=f"- Orchestrator: {FIRST}\n"))
    team.read()
    assert team.runs["lead"].parent_session == "sentinel"
    assert team.runs["lead"].link == "the BRIEFING.md of its parent, which names it"
    assert team.runs["mapper"].parent_session == "lead"
    assert team.runs["sentinel"].parent_session is None


def test_a_directory_may_be_called_like_its_conversation(team: Team) -> None:
    team.write(FIRST, BRIEFING=briefing(HUMAN))
    team.write("mapper", BRIEFING=briefing(FIRST))
    team.read()
    assert team.runs["mapper"].parent_session == FIRST


def test_newer_teams_keep_their_roles_one_directory_further_down(team: Team) -> None:
    team.write("teamwork", ORIGINAL_REQUEST="## 2026-09-21T13:00:00Z\nDraw a map.\n")
    team.write("teamwork/lead", BRIEFING=briefing(HUMAN, roster="| mapper | w | Map | failed | |\n"))
    team.write("teamwork/mapper", DISPATCH="Draw.", BRIEFING=briefing(FIRST), progress=PROGRESS)
    team.write("mapper", BRIEFING=briefing(SECOND), progress=PROGRESS)
    team.read()
    assert team.runs.keys() == {"teamwork/lead", "teamwork/mapper", "mapper"}
    run = team.runs["teamwork/mapper"]
    assert (run.title, run.parent_session, run.state) == ("mapper", "teamwork/lead", RunState.FAILED)
    assert run.place == str(team.root / ".agents" / "teamwork" / "mapper")
    assert run.prompt is not None
    assert team.reader.text(run.prompt.digest) == "Draw."
    assert team.runs["mapper"].state is RunState.WORKING


@pytest.mark.parametrize(("above", "name"), [("", ".agents"), ("teamwork", "teamwork")])
def test_the_role_that_watches_may_have_its_briefing_beside_the_others(team: Team, above: str, name: str) -> None:
    watching = f"- Orchestrator: {FIRST} (terminated)\n\n## Project Status\n- **Phase**: complete\n"
    team.write(above, ORIGINAL_REQUEST="Draw a map.", BRIEFING=briefing(rest=watching), handoff="It is drawn.")
    team.write(f"{above}/lead".lstrip("/"), BRIEFING=briefing(HUMAN, rest=f"- Heartbeat cron: {FIRST}/task-3\n"))
    team.read()
    run = team.runs[name]
    assert (run.state, run.parent_session) == (RunState.ENDED, None)
    assert run.prompt is not None
    assert team.reader.text(run.prompt.digest) == "Draw a map."
    assert [run.parent_session for run in team.runs.values() if run.title == "lead"] == [name]


@pytest.mark.parametrize("phase", ["in progress (blocked)", "auditing", "not started"])
def test_a_role_that_watches_over_a_project_works_until_the_project_ends(team: Team, phase: str) -> None:
    watching = briefing(rest=f"\n## Project Status\n- **Phase**: {phase}\n- **Route**: General\n")
    team.write("sentinel", BRIEFING=watching, handoff="# Handoff\nThe lead is asked, and I watch.\n")
    team.read()
    run = team.runs["sentinel"]
    assert (run.state, run.said, run.ended_at) == (RunState.WORKING, None, None)
    team.write("sentinel", WRITTEN + 60, BRIEFING=watching.replace(phase, "Complete"))
    team.read()
    assert team.runs["sentinel"].state is RunState.ENDED


def test_the_phase_of_a_checker_is_not_that_of_a_project(team: Team) -> None:
    team.write("auditor", BRIEFING=briefing(rest="\n## Audit Progress\n- **Phase**: not started\n"), handoff="Clean.")
    team.read()
    assert team.runs["auditor"].state is RunState.ENDED


def test_the_oldest_teams_kept_what_they_were_asked_as_a_prompt(team: Team) -> None:
    team.write("mapper", original_prompt="## 2026-09-21T13:00:00Z\nDraw a map.\n", progress=PROGRESS)
    team.read()
    prompt = team.runs["mapper"].prompt
    assert prompt is not None
    assert "Draw a map." in (team.reader.text(prompt.digest) or "")


@pytest.mark.parametrize("name", ["workflows", "commands", "skills", "rules"])
def test_what_other_programs_keep_for_agents_is_no_role(team: Team, name: str) -> None:
    team.write(name, handoff="---\ndescription: Hand over\n---\nWrite down where you are.\n", progress="# Progress")
    assert team.read() == []
    team.write(name, BRIEFING=briefing())
    assert team.read() == [name]


def test_a_role_that_names_itself_is_a_root(team: Team) -> None:
    team.write("lead", BRIEFING=briefing(FIRST, rest=f"- Heartbeat cron: {FIRST}/task-11\n"))
    team.read()
    assert team.runs["lead"].parent_session is None


def test_without_a_trace_of_the_conversation_the_only_roster_is_the_parent(team: Team) -> None:
    team.write("lead", BRIEFING=briefing(HUMAN, roster="| Someone | x | y | completed | |\n"))
    team.write("mapper", BRIEFING=briefing(SECOND))
    team.read()
    assert team.runs["mapper"].parent_session == "lead"
    assert team.runs["mapper"].link == "the only team roster there is"


def test_what_the_roster_calls_failed_has_failed_unless_it_handed_something_over(team: Team) -> None:
    roster = f"| mapper | w | Map | failed (timeout) | {FIRST} |\n| drawer | w | Draw | failed | {SECOND} |\n"
    roster += "| copier | w | Copy | stuck (replaced) | |\n| printer | w | Print | vetoed | |\n"
    team.write("lead", BRIEFING=briefing(HUMAN, roster=roster))
    for role in ("mapper", "copier", "printer"):
        team.write(role, BRIEFING=briefing(HUMAN), progress=PROGRESS)
    team.write("drawer", BRIEFING=briefing(HUMAN), handoff="Done.")
    team.read()
    assert (team.runs["copier"].state, team.runs["printer"].state) == (RunState.FAILED, RunState.WORKING)
    assert team.runs["mapper"].state is RunState.FAILED
    assert team.runs["mapper"].reason == "The team roster of its parent says: failed (timeout)"
    assert team.runs["drawer"].state is RunState.ENDED


def test_a_checked_out_workspace_shows_the_times_that_its_agents_wrote(team: Team) -> None:
    team.write("mapper", WRITTEN + 90 * 86_400, BRIEFING=briefing(), progress=PROGRESS, handoff="Done.")
    team.read()
    run = team.runs["mapper"]
    assert (run.updated_at, run.ended_at) == (1_789_996_800.0, 1_789_996_800.0)


@pytest.mark.parametrize("said", ["2030-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-99-99T99:99", "soon"])
def test_a_guessed_heartbeat_does_not_move_the_time(team: Team, said: str) -> None:
    team.write("mapper", BRIEFING=briefing(), progress=f"Last visited: {said}\n")
    team.read()
    assert team.runs["mapper"].updated_at == WRITTEN


def test_a_role_that_is_deleted_is_gone_and_its_children_lose_it(team: Team) -> None:
    team.write("lead", BRIEFING=briefing(HUMAN, rest=f"- Heartbeat cron: {FIRST}/task-11\n"))
    team.write("mapper", BRIEFING=briefing(FIRST))
    team.read()
    (team.root / ".agents" / "lead" / "BRIEFING.md").unlink()
    assert set(team.read()) == {"lead", "mapper"}
    assert team.runs["mapper"].parent_session is None


def test_a_changed_text_is_not_given_for_the_old_one(team: Team) -> None:
    team.write("mapper", ORIGINAL_REQUEST="One.")
    team.read()
    prompt = team.runs["mapper"].prompt
    assert prompt is not None
    team.write("mapper", ORIGINAL_REQUEST="Two.")
    assert team.reader.text(prompt.digest) is None
    assert team.reader.text("0" * 64) is None


def test_links_pipes_and_large_files_are_refused_and_told(team: Team) -> None:
    team.write("mapper", ORIGINAL_REQUEST="Draw.", BRIEFING="x" * (2 << 20))
    directory = team.root / ".agents" / "mapper"
    (directory / "progress.md").symlink_to("/etc/hostname")
    os.mkfifo(directory / "handoff.md")
    (team.root / ".agents" / "outside").symlink_to("/etc")
    team.read()
    run = team.runs["mapper"]
    assert (run.todos, run.said) == (None, None)
    assert team.reader.trouble is not None
    assert "mapper" in team.reader.trouble
    assert team.runs.keys() == {"mapper"}


PIECES = st.sampled_from(
    ["## Team Roster\n", "| Agent |", "|", "\n", "---", "## Current Parent\n", FIRST, SECOND, "- [x] ", " ", "\u202e"]
)
FIELDS = st.sampled_from(
    ["Last visited: ", "- Orchestrator: ", "- Original parent: ", "/task-1", "2026-09-21T13:20:00Z"]
)


@given(texts=st.lists(st.lists(PIECES | FIELDS, max_size=30).map("".join), min_size=1, max_size=4))
def test_any_text_gives_a_run_for_each_role_and_no_role_is_its_own_parent(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    team = Team(tmp_path_factory.mktemp("team"))
    for number, text in enumerate(texts):
        team.write(f"role_{number}", BRIEFING=text, progress=text)
    team.read()
    assert len(team.runs) == len(texts)
    for name, run in team.runs.items():
        assert run.parent_session != name
        assert run.parent_session is None or run.parent_session in team.runs


@pytest.mark.parametrize(
    "text",
    [
        "# Handoff\n\n- **Status**: FAILED\n",
        "# Bericht\n\n## Ergebnis\n\nFehlgeschlagen: die Tests laufen nicht.\n",
        "# 交接\n\n**状态**：失败（编译错误）\n",
        "# 引き継ぎ\n\n## 結果\n失敗\n",
        "# 인수인계\n\n- 상태: 실패\n",
        "# Bàn giao\n\n**Trạng thái:** THẤT BẠI\n",
        "# Отчёт\n\nСтатус: ❌ провал\n",
        "# Informe\n\n| Estado | Fallido |\n",
        "# Handoff\n\nStatus: ERROR (exit code 1)\n",
        "# Rapport\n\nStatut : échec du build\n",
        "# Handoff\n\nStatus: done\n\n## Final verdict\n\n**FAILURE**: two tests are red.\n",
    ],
)
def test_a_handoff_whose_status_is_a_failure_has_failed_in_any_language(team: Team, text: str) -> None:
    team.write("mapper", BRIEFING=briefing(), handoff=text)
    team.read()
    run = team.runs["mapper"]
    assert run.state is RunState.FAILED
    assert run.reason.startswith("Its handoff says: ")
    assert run.said is not None
    assert run.ended_at is not None


@pytest.mark.parametrize(
    "text",
    [
        "# Handoff\n\nStatus: completed, no test failed.\n",
        "# Handoff\n\nStatus: failed\n\nThen I mended it.\n\nStatus: done\n",
        "# Handoff\n\nThe build failed once, and I mended it.\n",
        "# Bericht\n\nErgebnis: Fehler behoben\n",
        "# Handoff\n\nStatus: error handling is done\n",
        "# Handoff\n\n## Result\n\nFailsafe mode is built.\n",
        "# 交接\n\n**状态**：完成，没有失败\n",
    ],
)
def test_a_failure_in_a_sentence_is_none(team: Team, text: str) -> None:
    team.write("mapper", BRIEFING=briefing(), handoff=text)
    team.read()
    assert team.runs["mapper"].state is RunState.ENDED
