"""HTML for notebooks, and the page of a review.

Every text is escaped, because file names and contents come from anyone.
"""

from collections.abc import Iterable, Sequence

from agentfs.base.lazy import html, resources

_CELL = "text-align: left; vertical-align: top"


def html_block(title: str, text: str, *, images: Iterable[tuple[str, str]] = ()) -> str:
    """Return a title, a text as it is, and images, each with its media type and its data in base64."""
    shown = "".join(
        f'<img src="data:{html.escape(kind)};base64,{html.escape(data)}" style="max-width: 100%">'
        for kind, data in images
    )
    return f"<div><strong>{html.escape(title)}</strong><pre>{html.escape(text)}</pre>{shown}</div>"


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a title and a table."""
    cells: list[str] = []
    for tag, line in [("th", head), *(("td", row) for row in rows)]:
        shown = (html.escape(str(cell)) for cell in line)
        cells.append("".join(f'<{tag} style="{_CELL}">{cell}</{tag}>' for cell in shown))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<div><strong>{html.escape(title)}</strong><table>{body}</table></div>"


def review_page(data: str) -> str:
    """Return the page of a review, given as JSON, which its script shows as text and never as HTML."""
    page = resources.files(__name__.rpartition(".")[0]).joinpath("review.html").read_text("utf-8")
    safe = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return page.replace('"REVIEW"', safe, 1)
