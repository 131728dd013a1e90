"""However a store grows, and wherever its reader begins, the runs in the end are the same."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.run import Run
from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
from tests.unit.claude_code.building import Store, indented, meta, notification, packet, report


def a_bit_of_everything(root: Path) -> Store:
    store = Store(root)
    main = store.session()
    first = store.agent("a1", meta("toolu_1"))
    below = store.agent("a2", meta("toolu_4", parentAgentId="a1", spawnDepth=2))
    back = store.agent("a3", meta("toolu_2", requestShape="background"))
    bare = store.agent("a4")
    store.agent("a5", meta("toolu_4", "rival")).asked("below, too")
    main.asked("Go.")
    main.delegated("toolu_1", packet("t.a"))
    main.delegated("toolu_2", packet("t.b"), run_in_background=True)
    main.delegated("toolu_3", "same")
    main.delegated("toolu_5", "refused", "none")
    main.got("toolu_5", "no such type", error=True)
    main.launched("toolu_2", "a3")
    first.asked(packet("t.a"))
    first.used("TodoWrite", "toolu_6", todos=[{"content": "ä", "status": "pending"}])
    first.delegated("toolu_4", "below")
    below.asked("below")
    below.said("Prosa.")
    below.asked("Stop hook feedback:\nagain", isMeta=True)
    below.said(report("SUCCESS"))
    first.got("toolu_4", indented(report("SUCCESS"), "a2"))
    back.asked(packet("t.b"))
    back.said(report("ERROR"), stop=None)
    main.record("queue-operation", content=notification("a3", "completed", "finished", "copy", "toolu_2"))
    bare.asked("same")
    bare.raw(b"{broken")
    bare.interrupted()
    first.said(report("PARTIAL"))
    main.returned("toolu_1", "a1", report("PARTIAL"))
    first.asked("Go on.", isMeta=True, origin={"kind": "coordinator"})
    first.said(report("SUCCESS", "Ünïcode 𝄞"))
    main.asked(notification("a1", "completed", "finished", "copy"))
    main.said("Over.")
    return store


def drain(reader: ClaudeCodeReader, runs: dict[str, Run], seconds: float = 60.0) -> None:
    for change in reader.read(seconds):
        if change.run is None:
            runs.pop(change.key)
        else:
            runs[change.key] = change.run


steps = st.tuples(
    st.integers(0, 11),
    st.sampled_from(("byte", "line", "some", "all", "read", "glance", "restart", "rewrite")),
    st.floats(0, 1),
)


@given(st.lists(steps, max_size=60), st.permutations(range(12)))
def test_any_order_of_any_pieces_gives_the_same_runs(steps: list[tuple[int, str, float]], order: list[int]) -> None:
    with TemporaryDirectory() as directory:
        store = a_bit_of_everything(Path(directory))
        whole = sorted(store.files.items())
        written = [0] * len(whole)
        reader, runs = store.reader(), dict[str, Run]()
        rest = [(number, "all", 0.0) for number in order]
        for number, how, part in steps + rest:
            path, content = whole[number % len(whole)]
            done = written[number % len(whole)]
            if how in ("read", "glance"):
                drain(reader, runs, 60.0 if how == "read" else 0.0)
                continue
            if how == "restart":
                reader, runs = store.reader(), {}
                continue
            if how == "rewrite":
                # Another file comes under the same name, and then the right one from its beginning.
                _replace(path, content[: int(part * len(content))] + b"\n{}\n")
                drain(reader, runs)
                _replace(path, b"")
                written[number % len(whole)] = 0
                continue
            size = {
                "byte": 1,
                "line": content.find(b"\n", done) + 1 - done,
                "some": int(part * (len(content) - done)),
                "all": len(content) - done,
            }[how]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(content[done : done + max(size, 0)])
            written[number % len(whole)] += len(content[done : done + max(size, 0)])
        drain(reader, runs)
        expected: dict[str, Run] = {}
        drain(store.reader(), expected)
        assert runs == expected
        assert len(runs) == 7


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name("new")
    new.write_bytes(content)
    new.replace(path)
