"""The files of a tree by our walk and by git."""

import os
import subprocess
from pathlib import Path

from agentfs.fs import Root
from agentfs.policy import Policy
from agentfs.tree.walk import Walk
from tests.kit import put


def git(top: Path | str, *words: str, config: object = os.devnull, home: object = "/nonexistent", given=None):
    """Run git without the configuration of the machine; return what it says."""
    names = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", **names}
    environment |= {"GIT_CONFIG_GLOBAL": str(config)} if config else {}
    command = ["git", "-C", str(top), *words]
    ran = subprocess.run(command, input=given, capture_output=True, check=False, env=environment)
    assert ran.returncode == 0 or words[0] == "check-ignore", ran.stderr
    assert not ran.stderr or words[0] != "check-ignore"
    return os.fsdecode(ran.stdout)


def git_files(top, **options) -> list[str]:
    said = git(top, "ls-files", "-co", "--exclude-standard", "-z", **options)
    return sorted(name for name in said.split("\0") if name)


def walked_files(top, hidden: object = True) -> list[str]:
    """Return the files of a walk in its order; `hidden` are the hidden names to show."""
    shown = hidden if isinstance(hidden, bool) else lambda name: name in hidden
    with Root(top, Policy()) as root:
        visits = Walk(root, ".", max_entries=10**6, others=True, hidden=shown)
        return [
            f"{visit.directory.real_path}/{each.name}".lstrip("/") for visit in visits for each in visit.files
        ]


def plant(top: Path, files: dict[str, str | bytes]) -> Path:
    """Write files, and links for the texts that begin with `-> `."""
    put(top, {name: text for name, text in files.items() if text[:3] != "-> "})
    for name, text in files.items():
        if text[:3] == "-> ":
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).symlink_to(str(text[3:]))
    return top
