"""Whatever a document holds, every tab can be written and no line is wider than the page."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from details_tasks import NOW, PACKET, REPORT, RETURN_META, SUBAGENT_RETURN, AtOnce, case
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.widgets.details.blocks import lay_out
from agentwatch.app.widgets.details.tabs import TABS
from agentwatch.contracts.shapes import Contract

DOCUMENTS = {
    Contract.SUBAGENT_RETURN: json.loads(SUBAGENT_RETURN),
    Contract.RETURN_META: json.loads(RETURN_META),
    Contract.REPORT_CONTRACT: json.loads(REPORT),
}

SECTIONS = ["## Status", "## Deliverables", "## Evidence", "## Runtime Attestation", "files_created:", "- (none)"]

texts = st.text(alphabet="ab宽 \n\t*`_[]()#>-|\x1b\u202e\u0301👍.", max_size=80)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def changed(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """The document with some of its values, at any depth, replaced by others."""
    whole = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 4))):
        place: Any = whole
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list)) and draw(st.booleans()):
                place = place[key]
                continue
            place[key] = draw(values)
            break
    whole["added"] = draw(values)
    return whole


def written(contract: Contract, returned: str, packet: str, width: int) -> None:
    one = case(contract, text=returned, packet_text=packet)
    view = AtOnce(one.task, one.tree, one, NOW)
    for tab in TABS.values():
        lines = lay_out(tab.write(view), width)
        assert lines
        assert all(line.content.cell_length <= width for line in lines)
        assert all(not set("\n\x1b\u202e") & set(line.content.plain) for line in lines)


@pytest.mark.parametrize("contract", DOCUMENTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_json_return_is_written(contract: Contract, data: st.DataObject) -> None:
    returned = json.dumps(data.draw(changed(DOCUMENTS[contract])))
    written(contract, returned, PACKET, data.draw(st.sampled_from([36, 60, 90])))


@settings(max_examples=60, deadline=None)
@given(changed(json.loads(PACKET.split("```")[1].removeprefix("json"))), st.sampled_from([36, 60, 90]))
def test_any_packet_is_written(packet: dict[str, Any], width: int) -> None:
    written(Contract.SUBAGENT_RETURN, SUBAGENT_RETURN, json.dumps(packet), width)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(SECTIONS)
        | texts
        | texts.map(lambda text: f"- {text}")
        | texts.map(lambda text: f"summary: {text}"),
        max_size=20,
    ),
    st.sampled_from([36, 60, 90]),
)
def test_any_markdown_return_is_written(lines: list[str], width: int) -> None:
    written(Contract.RETURN_FORMAT, "\n".join(lines), PACKET, width)
