"""The command line on a pseudo-terminal, recorded: prompts, colours and columns as a person sees them.

`PYTHONPATH=. python tests/test_recorded_terminal.py` writes recorded_terminal.txt anew. In it, `␛` stands for
the escape character.
"""

import shlex
import sys
import tempfile
from pathlib import Path

from agentfs import cli
from agentfs.cli import output
from tests.test_terminal import run

RECORDED = Path(__file__).with_name("recorded_terminal.txt")
FILES = {
    "README.md": "# shop\n\nTODO: say what a cart is.\n",
    "shop/cart.py": "def total(items):\n    # TODO: discounts\n    return sum(items)\n",
    "shop/été.py": "PRICE = 12  # TODO: ask Zoë, 日本\n",
    "shop/data/rows.csv": "".join(f"{row},\n" for row in range(1, 120)),
    "shop/data/long.csv": f"long,{'x' * 2000}\n",
    ".gitignore": "build/\n",
    "build/out.py": "# TODO: made by a tool\n",
    ".env": "TOKEN=1\n",
}
COMMANDS = (
    "agentfs ls",
    "agentfs ls shop --depth 0",
    "agentfs ls shop --limit 2",
    "agentfs glob '**/*.py'",
    "agentfs glob '*.rs'",
    "agentfs find -t d",
    "agentfs find -e csv",
    "agentfs grep TODO",
    "agentfs grep todo shop -C 1 -i",
    "agentfs grep '^(9|10|101),'",
    "agentfs grep '^long'",
    "agentfs grep -l TODO",
    "agentfs grep -c TODO",
    "agentfs grep TODO --limit 1",
    "agentfs grep absent",
    "agentfs ls missing",
)


def session() -> None:
    """Run the commands, each after a prompt."""
    output.PROGRESS_AFTER = 60  # on a slow machine too
    for command in COMMANDS:
        sys.stdout.write(f"$ {command}\n")
        sys.stdout.flush()
        cli.main(shlex.split(command)[1:])


def recording() -> str:
    """Return the text of a session: each command after a prompt, then its output."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "project")
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        (root / "shop/latest.csv").symlink_to("data/rows.csv")
        shown, _ = run(
            root, session, terminals=("stdout", "stderr"),
            XDG_CACHE_HOME=f"{directory}/cache", LC_ALL="C.UTF-8", LS_COLORS="",
        )  # fmt: skip
    return shown.replace("\r\n", "\n").replace("\x1b", "␛")


def test_a_session_on_a_terminal_is_as_recorded():
    recorded = RECORDED.read_text(encoding="utf-8")
    assert recording() == recorded
    assert [char for char in recorded if not char.isprintable() and char != "\n"] == []


if __name__ == "__main__":
    RECORDED.write_text(recording(), encoding="utf-8")
