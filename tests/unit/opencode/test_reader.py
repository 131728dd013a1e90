"""Sessions as the program leaves them, read as runs."""

from agentwatch.delegation.events import RunState
from tests.unit.opencode.program import Program, fresh


def test_a_message_that_is_taken_back_leaves_nothing_behind(program, watched, workspace, database):
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), "Please.")
    later = program.begin(root)
    todos = [{"content": "Sweep.", "status": "pending"}]
    program.call(root, later, "todowrite", status="completed", input={"todos": todos}, output="x")
    program.part(root, later, {})
    before = watched.read()[root]
    assert (watched.runs[child].state, before.todos is not None) == (RunState.FAILED, True)
    assert watched.reader.trouble == "opencode.db has 1 record that cannot be read."
    program.remove_message(root, later)
    assert watched.read() == fresh(workspace, database)
    assert (watched.runs[child].state, watched.runs[root].todos) == (RunState.SUBMITTED, None)
    assert watched.runs[root].updated_at < before.updated_at
    assert watched.reader.trouble is None


def test_a_conversation_that_is_shortened_goes_on_in_no_new_round(program, watched):
    root = program.session()
    program.ask(root, "Please.")
    program.answer(root, "Done.")
    before = watched.read()[root].state
    asked = program.ask(root, "/compact")
    times = {"created": program.now, "completed": program.now}
    program.message(root, {"role": "assistant", "summary": True, "parentID": asked, "time": times, "finish": "stop"})
    assert watched.read()[root].state is before is RunState.ENDED


def test_a_database_that_is_replaced_is_read_anew_and_what_was_in_the_first_is_gone(
    program, watched, workspace, database
):
    root = program.session()
    assert set(watched.read()) == {root}
    program.close()
    for path in database.parent.glob("opencode.db*"):
        path.unlink()
    assert not watched.read()
    other = Program(database, workspace)
    other.now += 1000
    new = other.session()
    other.answer(new, "Here.")
    assert set(watched.read()) == {new}
    assert watched.said(new) == "Here."
    other.close()
