"""Write the seven tools' schemas anew, as `tests/snapshots` holds them."""

import json
import sys
import tempfile
from pathlib import Path

from agentfs import Workspace
from agentfs.providers import FORMATS, STRICT_FORMATS

FOLDER = Path(__file__).parents[1] / "tests" / "snapshots"


def texts() -> dict[str, str]:
    """Return the name and the text of each snapshot, made now."""
    kinds = [(name, False) for name in FORMATS] + [(name, True) for name in STRICT_FORMATS]
    with tempfile.TemporaryDirectory() as root, Workspace(root) as ws:
        tools = ws.tools()
        return {
            f"{name}{'-strict' if strict else ''}.json": json.dumps(
                tools.schemas(name, strict=strict), indent=2, ensure_ascii=False
            )
            + "\n"
            for name, strict in kinds
        }


def main() -> int:
    """Write the snapshots, and remove those of formats that no longer exist."""
    made = texts()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
