"""Functions on text: decode, split into lines, number, cut, diff, merge and estimate tokens."""
# pyright: reportUnusedImport=false

from agentfs.base.advice import plural
from agentfs.base.visible import escape_controls, one_line, quoted, to_json, unvisible, visible
from agentfs.text.compare import changed_lines
from agentfs.text.decoding import (
    HEAD,
    UNKNOWN_8BIT,
    Decoded,
    bom_of,
    codec_name,
    codec_of,
    declared_encoding,
    decode,
    decode_in,
    encode,
    is_binary,
    likely_encoding,
)
from agentfs.text.diff import (
    DIFF_CONTEXT,
    ReplacedLines,
    bounded_lines,
    hunks,
    line_changes,
    styled_diff,
    unified_diff,
)
from agentfs.text.display import (
    CUT_MARK,
    Shrink,
    both_ends,
    carriage_return_note,
    continuation,
    cut_line,
    cut_mark,
    estimate_tokens,
    first_names,
    fits,
    fitted,
    footer,
    head_and_tail,
    line_ranges,
    most_characters,
    most_that_fit,
    notes_of,
    number_lines,
    numbered,
    visible_lines,
    with_note,
    with_text,
)
from agentfs.text.lines import (
    EditView,
    LfView,
    Replacement,
    View,
    bodies_of,
    common_prefix,
    common_suffix,
    count_lines,
    end_of,
    lf_view,
    line_start,
    newline_of,
    pieces_of,
    without_end,
)
