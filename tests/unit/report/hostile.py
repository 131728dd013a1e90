"""Texts that try to be more than text."""

import unicodedata

from hypothesis import strategies as st

PIECES = (
    *("<script>document.title='owned'</script>", "<img src=x onerror=document.title='owned'>", "</td></table>", "-->"),
    *("<svg onload=alert(1)>", "</title>", "</style>", "</details>", "<!--", "<a href=javascript:alert(1)>", "&lt;b>"),
    *(
        "[a](javascript:alert(1))",
        "![i](http://agentwatch-report.invalid/i.png)",
        "<http://e.invalid>",
        "[x]: http://e",
    ),
    *("https://e.invalid/", "www.e.invalid", "mailto:a@e.invalid", "a@e.invalid", "@ann", "#12", "o/r#12", "GH-12"),
    *("3f9ac04e11d2", ":tada:", "$x$", "$$", "`", "``", "```", "~~~", "**", "__", "_", "*", "|", "||", "\\|", "\\"),
    *("# h", "> q", "- ", "1. ", "===", "---", "\n", "\r\n", "\n\n", "\t", "    ", '"', "'", '" onclick="', "&", "&#"),
    *("\x00", "\x07", "\x1b[31m", "\x1b]8;;http://e\x07", "\x85", "\u2028", "\u202e", "\u2066", "\ufeff", "\u200b"),
    *(
        "\ud800",
        "\ue000",
        "e\u0301\u0301\u0301\u0301",
        "漢字",
        "[^1]",
        "[!NOTE]",
        "{{x}}",
        "%%{init}%%",
        "javascript:x",
    ),
)

TEXTS = (
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), min_size=1, max_size=8)
    .map("".join)
    .filter(lambda text: bool(text) and text.count("\n") < 20)
)


def is_visible(character: str) -> bool:
    """Nothing that moves, hides or reverses."""
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
