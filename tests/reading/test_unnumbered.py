"""Pages without a number on each line, as some dialects show them."""

import inspect
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentfs import Limits, Workspace
from agentfs.base.visible import visible
from agentfs.dialects import toolkit
from agentfs.dialects.toolkit import ReadOptions
from agentfs.text.display import estimate_tokens
from tests.kit import refused


def unnumbered(ws, path, *range_, **options):
    return toolkit.read(ws, ReadOptions(path, *range_, line_numbers=False, **options))


@pytest.mark.parametrize("limits", [Limits(), Limits(file_bytes=1)], ids=["loaded", "streamed"])
def test_the_footer_goes_above_the_lines(tmp_path, limits):
    (tmp_path / "f").write_text("one\n[lines 1-2 of 2]\nthree\n")
    with Workspace(tmp_path, limits=limits) as ws:
        assert unnumbered(ws, "f").text == "[lines 1-3 of 3]\none\n[lines 1-2 of 2]\nthree", (
            "a line is no footer"
        )
        page = unnumbered(ws, "f", 2, 1)
        assert page.text == ('[line 2 of 3; more: read(path="f", offset=3, limit=1)]\n[lines 1-2 of 2]')
        assert (page.content, page.start_line, page.next["arguments"]["offset"]) == (
            "[lines 1-2 of 2]\n",
            2,
            3,
        )


lines = st.text(st.sampled_from("ab[]|:; \t1é⟦\x1b"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(lines, min_size=1, max_size=60), st.sampled_from([60, 200, 5000]), st.booleans())
def test_the_pages_add_up_to_the_file_for_any_lines(bodies, read_bytes, streamed):
    text = "".join(f"{body}\n" for body in bodies)
    limits = Limits(read_bytes=read_bytes, file_bytes=1 if streamed else 1000_000)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "f").write_text(text)
        with Workspace(directory, limits=limits) as ws:
            page = unnumbered(ws, "f")
            shown, content = [], page.content
            while True:
                head, *rest = page.text.split("\n")
                assert head.startswith(("[line ", "[lines "))
                assert len("\n".join(rest).encode()) <= max(read_bytes, 80)
                shown += rest
                if page.next is None:
                    break
                page = unnumbered(ws, **page.next["arguments"])
                content += page.content
            assert (shown, content) == ([visible(body) for body in bodies], text)
            assert page.end_line == len(bodies)


def test_a_file_read_without_numbers_may_be_replaced(tmp_path):
    (tmp_path / "f").write_text("a\nb\n")
    with Workspace(tmp_path) as ws:
        unnumbered(ws, "f", 1, 1)
        caught = refused(lambda: ws.write("f", "c\n"))
        assert caught.code == "unread"
        for call in caught.details["suggested_calls"]:
            unnumbered(ws, **call["arguments"])
        ws.write("f", "c\n")
    assert (tmp_path / "f").read_text() == "c\n"


def test_pages_without_numbers_cost_fewer_tokens(tmp_path):
    (tmp_path / "f.py").write_text(inspect.getsource(inspect))
    with Workspace(tmp_path) as ws:
        before = estimate_tokens(ws.read("f.py", 1000, 600).text)
        assert estimate_tokens(unnumbered(ws, "f.py", 1000, 600).text) < 0.85 * before


def test_ids_stay_without_numbers(tmp_path):
    with Workspace(tmp_path) as ws:
        ws.write("f", "".join(f"a line of some length {number}\n" for number in range(20)))
        shown = unnumbered(ws, "f", line_ids=True)
        assert shown.text.split("\n")[1] == f"{shown.line_ids[0]}|a line of some length 0"
