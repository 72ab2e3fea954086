"""A Jupyter notebook in the hands of an agent: it is read and edited as one text.

An edit changes the source of a cell as `read` shows it; outputs and metadata stay as they are.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from agentfs import Workspace

SOURCES = ["import math\n", "radius = 2\narea = 3.14 * radius ** 2\n", "print(area)\n"]


def notebook() -> dict[str, Any]:
    """Return a notebook with an output, as Jupyter saves it."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "execution_count": number,
            "outputs": [],
            "source": text,
        }
        for number, text in enumerate(SOURCES, 1)
    ]
    cells[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "12.56\n"}]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def main() -> None:
    """Read, search and edit a notebook."""
    with tempfile.TemporaryDirectory() as directory, Workspace(directory) as ws:
        path = Path(directory, "circle.ipynb")
        path.write_text(json.dumps(notebook(), indent=1))
        tools = ws.tools()
        print(tools.call("read", {"path": "circle.ipynb"}).content)
        print(tools.call("grep", {"pattern": "3\\.14"}).content)
        edit = {"path": "circle.ipynb", "old_string": "3.14 * radius", "new_string": "math.pi * radius"}
        print(tools.call("edit", edit).content)
        cells = json.loads(path.read_text())["cells"]
        print(f"The file has {len(cells)} cells; the second is {cells[1]['source']!r}.")


if __name__ == "__main__":
    main()
