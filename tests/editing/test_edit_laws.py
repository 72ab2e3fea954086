"""Laws of the splice, on random texts, encodings and line ends; no disk."""

import codecs

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentfs.editing.draft import Draft
from agentfs.editing.edit import apply_edits
from agentfs.errors import EditError
from agentfs.fs import Current
from agentfs.limits import Limits
from agentfs.results import Edit
from tests.conftest import lines_of

BOMS = {
    "utf-8": b"", "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE,
}  # fmt: skip
LETTERS = "ab €ä😀\t\u2028\x0c"
MANY = Limits(file_bytes=100 * 2**20)


def draft_of(data):
    return Draft(Current("f", "f", data, None), MANY)


def encode(text, encoding):
    return text.encode(encoding.removesuffix("-sig"))


@st.composite
def marked_files(draw):
    """An encoding, and a text in three parts; the middle part is unique."""
    encoding = draw(st.sampled_from(sorted(BOMS)))
    allowed = draw(st.sampled_from([("\n",), ("\r\n",), ("\n", "\r\n")]))
    letters = st.one_of(st.text(LETTERS, max_size=3), st.sampled_from(allowed))
    head, inner, tail = ("".join(draw(st.lists(letters, max_size=8))) for _ in range(3))
    return encoding, head, f"<{inner}>", tail


@given(marked_files(), st.text(LETTERS + "\n<>$\\1&%s{}", max_size=8))
def test_every_byte_outside_the_old_text_is_kept(case, new):
    encoding, head, middle, tail = case
    old = middle.replace("\r\n", "\n")
    assume(old != new)
    bom = BOMS[encoding]
    before = bom + b"".join(encode(part, encoding) for part in (head, middle, tail))
    applied = apply_edits(draft_of(before), [Edit(old, new)])
    after = applied.data
    start, end = bom + encode(head, encoding), encode(tail, encoding)
    assert after.startswith(start)
    assert after.endswith(end)
    inserted = after[len(start) : len(after) - len(end)].decode(encoding.removesuffix("-sig"))
    assert inserted.replace("\r\n", "\n") == new
    assert applied.after.source == head + inserted + tail


@settings(max_examples=70)
@given(marked_files(), st.text("abxy\n", min_size=1, max_size=6))
def test_text_shared_by_old_and_new_is_not_touched(case, added):
    """Shared lines keep their line ends, even if their neighbours have others."""
    encoding, head, middle, tail = case
    old = middle.replace("\r\n", "\n")
    text = head + middle + tail
    bom = BOMS[encoding]
    after = apply_edits(draft_of(bom + encode(text, encoding)), [Edit(old, old + added)]).data
    assert after.startswith(bom + encode(head + middle, encoding))
    assert after.endswith(encode(tail, encoding))


@given(
    st.binary(max_size=30).map(lambda data: data.replace(b"\x00", b"\xe9")), st.binary(max_size=30), st.data()
)
def test_unknown_8_bit_text_is_edited_as_bytes(head, tail, data):
    head, tail = b"\xff" + head.replace(b"<", b""), tail.replace(b"\x00", b"\xe9").replace(b"<", b"")
    new = data.draw(st.text("abc$&", max_size=5))
    before = head + b"<old>" + tail
    draft = draft_of(before)
    assume(draft.decoded.encoding == "unknown-8bit")
    assume(new != "<old>")
    after = apply_edits(draft, [Edit("<old>", new)]).data
    assert after == head + new.encode() + tail


def reference(text, edits):
    """A plain `multi_edit` of a text with LF line ends; None if it is refused."""
    start = text
    for old, new, replace_all in edits:
        count = sum(text.startswith(old, index) for index in range(len(text)))
        if not old or old == new or count == 0 or (count > 1 and not replace_all):
            return None
        text = text.replace(old, new)
    return None if text == start else text


@given(
    st.text("ab\n", max_size=20),
    st.lists(
        st.tuples(st.text("ab\n", min_size=1, max_size=3), st.text("ab\n", max_size=3), st.booleans()),
        min_size=1,
        max_size=3,
    ),
)
def test_an_edit_of_lf_text_equals_a_plain_replacement(text, edits):
    assume(all(old != new for old, new, _ in edits))
    try:
        applied = apply_edits(draft_of(text.encode()), [Edit(*edit) for edit in edits], match="exact")
    except EditError:
        assert reference(text, edits) is None
    else:
        assert applied.data.decode() == reference(text, edits)
        check_changed_lines(text, applied)


def check_changed_lines(before, applied):
    """The lines outside the hunks are the same, and the changed lines are those of the hunks."""
    old, new = lines_of(before), lines_of(applied.after.source)
    rebuilt, position = [], 0
    for hunk in applied.hunks:
        assert position <= hunk.old_start <= hunk.old_end <= len(old)
        rebuilt += old[position : hunk.old_start]
        assert len(rebuilt) == hunk.new_start
        rebuilt += new[hunk.new_start : hunk.new_end]
        position = hunk.old_end
    assert rebuilt + old[position:] == new
    changed = {line for first, last in applied.changed for line in range(first, last + 1)}
    assert changed <= {*range(1, len(new) + 1)} or changed == {0}
    assert {line for hunk in applied.hunks for line in range(hunk.new_start + 1, hunk.new_end + 1)} <= changed


@given(st.text("ab\r\n", max_size=20), st.text("ab\n", min_size=1, max_size=3), st.text("ab\n", max_size=3))
def test_any_mix_of_line_ends_gives_the_same_view(text, old, new):
    """The LF view of the outcome is the outcome of the LF view, in a text without lone CRs."""
    assume("\r" not in text.replace("\r\n", "") and old != new)
    try:
        after = apply_edits(draft_of(text.encode()), [Edit(old, new)], match="exact")
    except EditError:
        assert reference(text.replace("\r\n", "\n"), [(old, new, False)]) is None
    else:
        viewed = after.after.source.replace("\r\n", "\n")
        assert viewed == reference(text.replace("\r\n", "\n"), [(old, new, False)])
        assert after.data == after.after.source.encode()


@given(
    st.lists(st.sampled_from(["a", "b", "ä"]), min_size=1, max_size=6),
    st.text("ab\n", min_size=1, max_size=4),
)
def test_a_file_of_lone_carriage_returns_stays_one(lines, new):
    text = "\r".join([*lines, "<>", *lines])
    after = apply_edits(draft_of(text.encode()), [Edit("<>", new)])
    assert after.data.decode() == text.replace("<>", new.replace("\n", "\r"))


@pytest.mark.long
def test_every_byte_outside_the_old_text_is_kept_in_100_000_examples():
    for law in (test_every_byte_outside_the_old_text_is_kept, test_unknown_8_bit_text_is_edited_as_bytes):
        settings(max_examples=100_000, deadline=None)(law)()
