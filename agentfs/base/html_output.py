"""The page of a review. Every text is escaped, because file names and contents come from anyone."""

from agentfs.base.lazy import resources


def review_page(data: str) -> str:
    """Return the page of a review, given as JSON, which its script shows as text and never as HTML."""
    page = resources.files(__name__.rpartition(".")[0]).joinpath("review.html").read_text("utf-8")
    safe = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return page.replace('"REVIEW"', safe, 1)
