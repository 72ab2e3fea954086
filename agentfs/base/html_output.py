"""HTML for notebooks. Every text is escaped, because file names and contents come from anyone."""

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align: left; vertical-align: top"


def html_block(title: str, text: str, *, images: Iterable[tuple[str, str]] = ()) -> str:
    """Return a title, a text as it is, and images, each with its media type and its data in base64."""
    shown = "".join(
        f'<img src="data:{escape(kind)};base64,{escape(data)}" style="max-width: 100%">'
        for kind, data in images
    )
    return f"<div><strong>{escape(title)}</strong><pre>{escape(text)}</pre>{shown}</div>"


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a title and a table."""
    lines = [("th", head), *(("td", row) for row in rows)]
    cells = (
        "".join(f'<{tag} style="{_CELL}">{escape(str(cell))}</{tag}>' for cell in line) for tag, line in lines
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<div><strong>{escape(title)}</strong><table>{body}</table></div>"
