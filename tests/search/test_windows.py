"""Large files are searched in windows, with the results of a search of the full text."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentfs import Limits, Workspace
from agentfs.search import searcher

MODES = ["content", "files_with_matches", "count", "summary", "total"]
FACTS = ("total_matches", "total_lines", "total_files", "exact", "searched_files", "truncated")


def found(ws, pattern, file_bytes, **more):
    view = ws.view(limits=Limits(file_bytes=file_bytes, grep_line_chars=30, timeout=60))
    result = view.grep(pattern, "f", **more)
    facts = {name: getattr(result, name) for name in FACTS}
    matches = [(m.path, m.line, m.text, m.spans, m.before, m.after, m.cut) for m in result.matches]
    return matches, facts, result


LINES = st.lists(st.text("ab é\r", max_size=9), max_size=60)
PATTERNS = [
    *(
        "a",
        "ab",
        "aa|b é",
        "^",
        "^a",
        "b$",
        "^a?$",
        "[ab]+",
        "é",
        r"\bab\b",
        "(?<=a)b",
        "a(?=b)",
        "A",
        "a{2}",
        ".*",
    )
]
SPANNING = ["a\nb", "b\n+a", r"^ab$\n", "(?<=\n)a", r"\Aa", r"b\Z", "a[^a]b", r"\n\n", "^", "$"]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_in_windows_gives_what_its_full_text_gives(tmp_path, data):
    lines = data.draw(LINES)
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(lines) + data.draw(st.sampled_from(["", end]))
    if "\n" not in text:
        text = "\n" + text
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    (tmp_path / "f").write_bytes((text + "é").encode(encoding))
    multiline = data.draw(st.booleans())
    pattern = data.draw(st.sampled_from(SPANNING if multiline else PATTERNS))
    more = {
        "output_mode": data.draw(st.sampled_from(MODES)),
        "multiline": multiline,
        "ignore_case": data.draw(st.booleans()),
        "before": data.draw(st.integers(0, 3)),
        "after": data.draw(st.integers(0, 3)),
        "overlap": data.draw(st.booleans()),
        "max_count": data.draw(st.sampled_from([None, 1, 3])),
        "limit": data.draw(st.sampled_from([None, 1, 2, 7])),
        "invert": False if multiline else data.draw(st.booleans()),
    }
    with pytest.MonkeyPatch.context() as patched, Workspace(tmp_path) as ws:
        patched.setattr(searcher, "WINDOW", data.draw(st.integers(200, 400)))
        patched.setattr("agentfs.fs.pieces.BLOCK", data.draw(st.sampled_from([1, 7, 50, 1000])))
        expected = found(ws, pattern, 10**6, **more)
        windowed = found(ws, pattern, 1, **more)
        assert windowed[:2] == expected[:2]
        assert windowed[2].text == expected[2].text
