"""The MCP server itself: what a client's model reads, and the tools behind it. The only module that imports the SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from agentwatch import __version__
from agentwatch.agents.examples import Name
from agentwatch.agents.server import judging, submitting
from agentwatch.agents.server.judging import ContractTold, Submitted, Validated, Waited
from agentwatch.agents.server.waiting import Waiter
from agentwatch.composition import Load
from agentwatch.config import Settings

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


def serve(workspace: Path, settings: Settings, load: Load) -> int:
    """Serve over standard input and output until the client closes them. Returns the exit code."""
    make(workspace, settings, load).run("stdio")
    return 0


def make(workspace: Path, settings: Settings, load: Load) -> MCPServer:
    """The server of one workspace, with its tools."""
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
        return submitting.submit_handoff(workspace, packet, read_only=settings.read_only)

    @server.tool(annotations=_READS)
    def validate_return(
        text: Annotated[str, Field(description="Your whole return, exactly as you are about to send it.")],
    ) -> Validated:
        """Check your own return before you send it. For a child: call this once your work is done, before your last
        message.

        Each finding has the line and what to do there. Mend all errors and validate again until `compliant` is true: a
        return that breaks its contract counts as failed, whatever was achieved.
        """
        return judging.validated(text)

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
        submitted = submitting.submit_return(
            workspace, task_id, text, accept_invalid=accept_invalid, read_only=settings.read_only
        )
        if submitted.accepted and submitted.state not in submitting.WAITS:
            task = load(workspace, settings, inspects=True).tree.tasks.get(task_id)
            if task is not None and task.contradicted and task.question is not None:
                submitted.do_now = submitting.wait_about(task_id, task.question)
        return submitted

    @server.tool(annotations=_READS)
    async def wait_for_decision(task_id: _TaskId, context: Context, timeout_seconds: _Seconds = None) -> Waited:
        """Wait for the operator's decision about a task that failed, is blocked or invalid, or that needs an answer.

        It comes back after at most the time-out. `pending: true` means that nobody has decided yet, and is neither an
        approval nor a refusal: call it again at once, as often as it takes, and start nothing for this task meanwhile.
        With `pending: false` there is a signed decision (retry, escalate, abort, respond or accept): do exactly what
        `do_now` says, with the operator's `note`, `params` and the amended handoff in `handoff_path`.
        """

        async def progress(waited: float, most: float) -> None:
            await context.report_progress(waited, most, f"waiting for the operator: {waited:.0f} of {most:.0f} s")

        return await waiter.wait(task_id, timeout_seconds, progress)

    @server.tool(annotations=_READS)
    def get_contract(
        name: Annotated[Name, Field(description="handoff-packet for parents, return-format for children.")],
    ) -> ContractTold:
        """Get a contract's rules and a minimal example that keeps them. Call it before you write your first packet or
        return, and when a finding is not clear."""
        return judging.told(name)

    return server
