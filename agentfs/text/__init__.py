"""Pure text: decode, split lines, make visible, number, cut, diff, estimate tokens."""

from agentfs.text.decoding import (
    HEAD,
    UNKNOWN_8BIT,
    Decoded,
    bom_of,
    codec_name,
    codec_of,
    decode,
    decode_as,
    decode_in,
    encode,
    is_binary,
)
from agentfs.text.diff import MOST_LINES, hunks, unified_diff
from agentfs.text.fit import Step, fits, fitted, most_that_fit
from agentfs.text.line_ids import bodies_of, carried_ids, fresh_ids, moved_lines
from agentfs.text.lines import count_lines, end_of, lf_view, line_start, newline_of, split_lines, without_end
from agentfs.text.render import continuation, cut_line, footer, number_shown, numbered, visible_bodies
from agentfs.text.tokens import estimate_tokens
from agentfs.visible import one_line, quoted, shown_controls, to_json, unvisible, visible

__all__ = [
    "HEAD",
    "MOST_LINES",
    "UNKNOWN_8BIT",
    "Decoded",
    "Step",
    "bodies_of",
    "bom_of",
    "carried_ids",
    "codec_name",
    "codec_of",
    "continuation",
    "count_lines",
    "cut_line",
    "decode",
    "decode_as",
    "decode_in",
    "encode",
    "end_of",
    "estimate_tokens",
    "fits",
    "fitted",
    "footer",
    "fresh_ids",
    "hunks",
    "is_binary",
    "lf_view",
    "line_start",
    "most_that_fit",
    "moved_lines",
    "newline_of",
    "number_shown",
    "numbered",
    "one_line",
    "quoted",
    "shown_controls",
    "split_lines",
    "to_json",
    "unified_diff",
    "unvisible",
    "visible",
    "visible_bodies",
    "without_end",
]
