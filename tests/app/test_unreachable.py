"""A host that cannot be reached on screen: unknown and faint, nothing of it works, nothing new rings, no row moves."""

from __future__ import annotations

from tests.app.scenes import NOW, busy
from tests.app.stage import stage

from agentwatch.app.app import AgentwatchApp
from agentwatch.delegation.events import Lost, Reached, Tick
from agentwatch.delegation.joined import JoinedTree
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.view.order import Group, Order


async def test_a_host_that_comes_and_goes_rings_no_second_time() -> None:
    async with stage(scene=busy(), size=(140, 24), settled=True) as s:
        assert s.app.notifier is not None
        queue = s.app.notifier.queue
        queue.pop(1e9, [])
        for at in range(3):
            s.source.push([Lost(0, NOW - 180 + at), Tick(0, NOW + at)])
            await s.until(lambda: s.app.monitor.tree.lost_since is not None)
            s.source.push([Reached(0, NOW)])
            await s.until(lambda: s.app.monitor.tree.lost_since is None)
        assert not queue.is_due(1e9)
        assert isinstance(s.app, AgentwatchApp)


def test_the_row_of_a_workspace_stays_where_it_is_and_one_that_never_answered_stands_with_those_of_now() -> None:
    joined, trees = JoinedTree("\0m."), [Tree(host=name) for name in ("one", "two", "never")]
    order = Order(joined)
    scopes = [joined.show(tree, name=tree.host, workspace=f"/{tree.host}")[0] for tree in trees]
    for tree, ago in zip(trees[:2], (5, 50), strict=True):
        for one in busy().take():
            tree.apply(one)
        tree.apply(Tick(99, NOW + ago))
    changed = [joined.update(scope, tree, tree.tasks) for scope, tree in zip(scopes, trees, strict=True)]
    order.apply(set().union(*changed), NOW)
    order.is_settled = True

    def lose(number: int, at: float) -> None:
        changed = trees[number].apply(Lost(0, at))
        order.apply(joined.update(scopes[number], trees[number], changed), NOW + 60)

    lose(2, NOW)
    rows = [*order.groups.values()]
    assert order.group(scopes[2]) is Group.NOW
    lose(0, NOW)
    lose(1, NOW)
    assert [*order.groups.values()] == rows
    assert {joined.tasks[scope].state for scope in scopes} == {State.UNKNOWN}
    order.tick(NOW + 90_000)
    assert [*order.groups.values()] == rows
    for number in (1, 0):
        changed = {*trees[number].apply(Reached(0, NOW + 100))}
        order.apply(joined.update(scopes[number], trees[number], changed), NOW + 100)
    assert [*order.groups.values()] == rows
