"""What the chats of Gemini CLI come to, where they say less, or more, than one would think."""

from __future__ import annotations

from agentwatch.sources.gemini.gemini_reader import texts_in


def test_what_is_nested_too_deep_to_be_written_is_no_return() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    call = {"name": "complete_task", "args": {"result": deep}}
    assert list(texts_in({"content": "I am done.", "toolCalls": [call]})) == ["I am done.", "", ""]


# Whose a project is
