"""The MCP server of `agentwatch mcp`: what a client's model reads, and the tools behind it. Only here is the SDK."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from agentwatch import __version__
from agentwatch.agents import documents
from agentwatch.agents.documents import ContractTold, Submitted, Validated, Waited
from agentwatch.agents.examples import Name
from agentwatch.composition import Load, known_desk
from agentwatch.config import Settings
from agentwatch.decisions.reader import Asker, Expired, Found, Question, Verified, is_needless, question_about, waited
from agentwatch.delegation.task import Task

INSTRUCTIONS: Final = """\
A human operator watches this workspace with agentwatch and decides what happens to work that fails. Delegate like this:
1. submit_handoff with the packet, then start the child with that packet as the first block of its prompt.
2. Tell the child to end with a return that keeps the return format, and to check it with validate_return before.
3. submit_return with the child's return, word for word.
4. If it is failed, blocked or invalid, or claims what is false: wait_for_decision, again and again while it says
   pending. Then do what the decision says, and nothing else: only the operator retries, escalates, aborts, answers or
   accepts.
No tool here decides. Silence is never an approval."""

_TaskId = Annotated[str, Field(description="The task_id of the handoff packet, such as `shop.api`.", min_length=1)]
_Seconds = Annotated[
    float | None, Field(description="Default, and most: 45, or what the operator has configured.", ge=0)
]
_WRITES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)


_SLICE_SECONDS: Final = 1.0
"""How long a thread waits at a stretch: the longest that a cancelled call keeps one."""

_MOST: Final = 100
"""Waits that have a thread at the same time; the others take turns."""

T = TypeVar("T")


def serve(workspace: Path, settings: Settings, load: Load) -> int:
    """Serve one workspace over standard input and output until the client closes them. Returns the exit code."""
    server = MCPServer("agentwatch", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    waiter = Waiter(workspace, settings, load)

    @server.tool(annotations=_WRITES)
    def submit_handoff(
        packet: Annotated[
            str, Field(description="The packet as JSON, or Markdown whose first block is the fenced packet.")
        ],
    ) -> Submitted:
        """Hand a task over, before you start its child. Call this for every child, and for every new attempt of one.

        The packet is checked against the handoff-packet contract and written to handoffs/<task_id>.handoff.json, where
        the operator sees it. If it is not accepted, mend every finding and submit again; start no child before that.
        A further attempt has `attempt` one higher, and the `decision_id` of the decision that it carries out.
        """
        return documents.submit_handoff(workspace, packet, read_only=settings.read_only)

    @server.tool(annotations=_READS)
    def validate_return(
        text: Annotated[str, Field(description="Your whole return, exactly as you are about to send it.")],
    ) -> Validated:
        """Check your own return before you send it. For a child: call this once your work is done, before your last
        message.

        Each finding has the line and what to do there. Mend all errors and validate again until `compliant` is true: a
        return that breaks its contract counts as failed, whatever was achieved.
        """
        return documents.validate_return(text)

    @server.tool(annotations=_WRITES)
    def submit_return(
        task_id: _TaskId,
        text: Annotated[str, Field(description="The child's return, word for word, without prose around it.")],
        accept_invalid: Annotated[
            bool, Field(description="Take it although it breaks its contract: the task then counts as failed.")
        ] = False,
    ) -> Submitted:
        """Hand a child's return in, as soon as the child has ended, also if it failed. Never change what it says.

        It is checked against its contract and written to returns/<task_id>.return.md or .json. If it is refused, have
        the child mend the findings; only if it cannot, submit it with accept_invalid. Then follow `do_now`: for a task
        that failed, is blocked or invalid it is to call wait_for_decision, not to try again by yourself.
        """
        submitted = documents.submit_return(
            workspace, task_id, text, accept_invalid=accept_invalid, read_only=settings.read_only
        )
        if submitted.accepted and submitted.state not in documents.WAITS:
            task = load(workspace, settings, inspects=True).tree.tasks.get(task_id)
            if task is not None and task.contradicted and task.question is not None:
                submitted.do_now = documents.wait_about(task_id, task.question)
        return submitted

    @server.tool(annotations=_READS)
    async def wait_for_decision(task_id: _TaskId, timeout_seconds: _Seconds = None) -> Waited:
        """Wait for the operator's decision about a task that failed, is blocked or invalid, or that needs an answer.

        It comes back after at most the time-out. `pending: true` means that nobody has decided yet, and is neither an
        approval nor a refusal: call it again at once, as often as it takes, and start nothing for this task meanwhile.
        With `pending: false` there is a signed decision (retry, escalate, abort, respond or accept): do exactly what
        `do_now` says, with the operator's `note`, `params` and the amended handoff in `handoff_path`.
        """
        return await waiter.wait(task_id, timeout_seconds)

    @server.tool(annotations=_READS)
    def get_contract(
        name: Annotated[Name, Field(description="handoff-packet for parents, return-format for children.")],
    ) -> ContractTold:
        """Get a contract's rules and a minimal example that keeps them. Call it before you write your first packet or
        return, and when a finding is not clear."""
        return documents.describe_contract(name)

    server.run("stdio")
    return 0


class Waiter:
    """Waits for decisions about the tasks of one workspace. Cancelling a call ends it at once."""

    def __init__(self, workspace: Path, settings: Settings, load: Load) -> None:
        self._workspace = workspace
        self._settings = settings
        self._load = load
        # Its own: the server's other tools run in threads, too, and must never wait for these.
        self._threads = CapacityLimiter(_MOST)

    async def wait(self, task_id: str, seconds: float | None) -> Waited:
        """The decision about the latest attempt of a task, or that it is pending after so many seconds.

        Never longer than the settings say: the limits of the clients are behind that.
        """
        most = self._settings.mcp_wait
        end = time.monotonic() + (most if seconds is None else min(max(seconds, 0.0), most))
        asker = Asker(self._workspace, self._settings, "mcp")
        question, task = await self._in_thread(partial(self._ask, asker, task_id))
        end = time.monotonic() if is_needless(task) else end
        while True:
            left = max(end - time.monotonic(), 0.0)
            slice_ = min(left, _SLICE_SECONDS)
            found = await self._in_thread(partial(asker.reader.wait, question, slice_))
            if isinstance(found, Verified | Expired):
                return await self._in_thread(partial(self._answer, asker, task_id, found, task))
            if left <= slice_:
                return await self._in_thread(partial(self._answer_again, asker, task_id, found, question))

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._threads)

    def _ask(self, asker: Asker, task_id: str) -> tuple[Question, Task | None]:
        """How a task stands. Whether it may go on depends on whether what it claims is true."""
        for inspects in (False, True):
            tree = self._load(self._workspace, self._settings, inspects=inspects).tree
            asker.tell(tree, task_id)
            task = tree.tasks.get(task_id)
            if not is_needless(task):
                break
        return question_about(tree, task_id, None), task

    def _answer_again(self, asker: Asker, task_id: str, found: Found, before: Question) -> Waited:
        """The answer where the time is up: how the task stands now, not when the wait began."""
        question, task = self._ask(asker, task_id)
        return self._answer(asker, task_id, asker.reader.find(question) if question != before else found, task)

    def _answer(self, asker: Asker, task_id: str, found: Found, task: Task | None) -> Waited:
        path = None
        if isinstance(found, Verified):
            desk, path = known_desk(self._workspace), asker.hand_out(found.record)
            task = self._load(self._workspace, self._settings, desk=desk, inspects=False).tree.tasks.get(task_id)
            asker.note_read(found, "agentwatch mcp")
        told = waited(found, task, task_id, handoff_path=path)
        told["do_now"] = told["do_now"].replace("`agentwatch wait`", "wait_for_decision")
        return Waited(**told | {"state": task.own_state.value if task is not None else None})
