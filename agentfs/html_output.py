"""HTML for notebooks. Every text is escaped, because file names and contents come from anyone."""

from collections.abc import Iterable, Sequence

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_CELL = "text-align: left; vertical-align: top"


def escape_html(text: object) -> str:
    """Return a text in which no character has a meaning in HTML."""
    return str(text).translate(_ESCAPES)


def html_block(title: str, text: str, *, images: Iterable[tuple[str, str]] = ()) -> str:
    """Return a title, a text as it is, and images, each with its media type and its data in base64."""
    shown = "".join(
        f'<img src="data:{escape_html(kind)};base64,{escape_html(data)}" style="max-width: 100%">'
        for kind, data in images
    )
    return f"<div><strong>{escape_html(title)}</strong><pre>{escape_html(text)}</pre>{shown}</div>"


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a title and a table."""
    lines = [("th", head), *(("td", row) for row in rows)]
    cells = (
        "".join(f'<{tag} style="{_CELL}">{escape_html(cell)}</{tag}>' for cell in line) for tag, line in lines
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<div><strong>{escape_html(title)}</strong><table>{body}</table></div>"
