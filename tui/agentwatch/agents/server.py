"""The MCP server of `agentwatch mcp`: its tools, and their texts for language models."""

import time
from pathlib import Path
from typing import Annotated, Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from agentwatch import __version__
from agentwatch.agents import documents
from agentwatch.agents.documents import ContractTold, Submitted, Validated, Waited
from agentwatch.composition import Load, find_desk
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Contract
from agentwatch.decisions.reader import POLL_SECONDS, LookupResult, Question, Reader, needs_no_decision, question_about
from agentwatch.delegation.task import Task

INSTRUCTIONS = """\
A human operator watches this workspace with agentwatch and decides what happens to work that fails. Delegate like this:
1. submit_handoff with the packet, then start the child with that packet as the first block of its prompt.
2. Tell the child to end with a return that keeps the return format, and to check it with validate_return before.
3. submit_return with the child's return, word for word.
4. If it is failed, blocked or invalid, or claims what is false: wait_for_decision, again and again while it says
   pending. Then do what the decision says, and nothing else: only the operator decides how such a task goes on.
No tool here decides. Silence is never an approval."""

_TaskId = Annotated[str, Field(description="The task_id of the handoff packet, such as `shop.api`.", min_length=1)]
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def serve(workspace: Path, settings: Settings, load: Load) -> int:
    """Serve one workspace over standard input and output until the client closes them. Return the exit code."""
    server = MCPServer("agentwatch", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    @server.tool(annotations=_WRITES)
    def submit_handoff(packet: str) -> Submitted:
        """Hand over a task before you start its child. Call this for every child, and for every new attempt of a child.

        The packet is JSON, or Markdown whose first block is the fenced packet. It is checked against the handoff-packet
        contract and written to handoffs/<task_id>.handoff.json, where the operator sees it. If it is not accepted, mend
        every finding and submit again; start no child before that. In the packet of a further attempt, `attempt` is one
        higher, and `decision_id` names the decision that the attempt carries out.
        """
        return documents.submit_handoff(workspace, packet, read_only=settings.read_only)

    @server.tool(annotations=_READS)
    def validate_return(text: str) -> Validated:
        """Check the exact text of your own return before you send it. For a child: call this when your work is done,
        before your last message.

        Each finding has the line and what to do there. Mend all errors and validate again until `compliant` is true: a
        return that breaks its contract counts as failed, whatever was achieved.
        """
        return documents.validate_return(text)

    @server.tool(annotations=_WRITES)
    def submit_return(task_id: _TaskId, text: str, accept_invalid: bool = False) -> Submitted:
        """Hand in a child's return as soon as the child has ended, even if the child failed. `text` is the return, word
        for word, without prose around it. Never change what it says.

        It is checked against its contract and written to returns/<task_id>.return.md or .json. If it is refused, have
        the child mend the findings; only if it cannot, submit it with accept_invalid: the task then counts as failed.
        Then do what `do_now` says. For a task that failed, is blocked or invalid, it says: call wait_for_decision, and
        do not try again by yourself.
        """
        submitted = documents.submit_return(
            workspace, task_id, text, accept_invalid=accept_invalid, read_only=settings.read_only
        )
        if submitted.accepted and submitted.state not in documents.WAITS:
            task = load(workspace, settings, inspects=True).tree.tasks.get(task_id)
            if task and task.contradicted and task.question:
                submitted.do_now = documents.wait_instruction(task_id, task.question)
        return submitted

    @server.tool(annotations=_READS)
    async def wait_for_decision(
        task_id: _TaskId, timeout_seconds: Annotated[float | None, Field(ge=0)] = None
    ) -> Waited:
        """Wait for the operator's decision about a task that failed, is blocked or invalid, or that needs an answer.

        The call returns after at most `timeout_seconds`. Default and maximum are 45 seconds, or the operator's setting.
        `pending: true` means that nobody has decided yet. It is neither an approval nor a refusal: call this again at
        once, as often as it takes, and start nothing for the task until then. With `pending: false` there is a signed
        decision: do exactly what `do_now` says, with the operator's `note`, `params` and the amended handoff in
        `handoff_path`.
        """
        # Never wait longer than the settings say, because clients have time-outs.
        seconds = settings.mcp_wait if timeout_seconds is None else min(timeout_seconds, settings.mcp_wait)
        return await _wait_for_decision(workspace, settings, load, task_id, seconds)

    @server.tool(annotations=_READS)
    def get_contract(name: Contract) -> ContractTold:
        """Get a contract's rules and a minimal example that keeps them: handoff-packet for parents, return-format for
        children. Call it before you write your first packet or return, and when a finding is not clear."""
        return documents.describe_contract(name)

    server.run("stdio")
    return 0


async def _wait_for_decision(workspace: Path, settings: Settings, load: Load, task_id: str, seconds: float) -> Waited:
    """Wait for the decision about a task's latest attempt. If nobody decides in time, return a pending answer."""
    reader, end = Reader(workspace, "mcp", read_only=settings.read_only), time.monotonic() + seconds

    def load_task(**more: Any) -> tuple[Task | None, Question]:
        tree = load(workspace, settings, **more).tree
        reader.add_decisions(tree, task_id)
        return tree.tasks.get(task_id), question_about(tree, task_id, None)

    def find_question() -> tuple[Task | None, Question]:
        """Return the task and its question. Check claims only if no decision seems needed, because this is slow."""
        loaded = load_task(inspects=False)
        return load_task(inspects=True) if needs_no_decision(loaded[0]) else loaded

    def build_answer(found: LookupResult) -> Waited:
        # Load the task again, because it may have changed during the wait.
        task, question = load_task(desk=find_desk(workspace), inspects=False) if found.any_record else find_question()
        found = found if found.any_record else reader.find(question)
        _, fields = reader.answer(found, task, task_id)
        if found.record:
            reader.write_receipt(found, "agentwatch mcp")
        fields["do_now"] = fields["do_now"].replace("`agentwatch wait`", "wait_for_decision")
        return Waited(**fields | {"state": task.own_state.value if task else None})

    task, question = await run_sync(find_question, abandon_on_cancel=True)
    while True:
        found = await run_sync(reader.find, question, abandon_on_cancel=True)
        if found.any_record or needs_no_decision(task) or time.monotonic() >= end:
            return await run_sync(build_answer, found)
        await anyio.sleep(POLL_SECONDS)
