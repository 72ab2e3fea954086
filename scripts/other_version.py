"""The package of any commit, importable in a process of its own, to compare it with this checkout.

    from scripts.other_version import OtherVersion

    def outcome(text: str) -> object:  # uses agentfs; plain data in and out
        ...

    with OtherVersion("2577aaf1") as old:
        for text in random_texts():
            assert old.call(outcome, text) == outcome(text)

`benchmarks/versions.py COMMIT TREE` compares answers and times of the methods of a workspace.
"""

import inspect
import os
import pickle
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar, cast

ROOT = Path(__file__).resolve().parents[1]
Outcome = TypeVar("Outcome")


def unpack(commit: str, directory: Path) -> Path:
    """Write the package of a commit into a directory, and return the directory for `sys.path`."""
    archive = ["git", "-C", str(ROOT), "archive", commit, "agentfs"]
    with subprocess.Popen(archive, stdout=subprocess.PIPE) as git:  # noqa: S603 - our own command
        subprocess.run(["tar", "-x", "-C", str(directory)], stdin=git.stdout, check=True)  # noqa: S603, S607 - as above
    if git.returncode:
        raise ValueError(f"{commit} is not a commit of this repository")
    return directory


class OtherVersion:
    """A process that calls functions of this checkout with the package of another commit."""

    def __init__(self, commit: str) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="agentfs-version-")
        path = [str(unpack(commit, Path(self._directory.name))), str(ROOT)]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, __file__],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)

    def call(self, function: Callable[..., Outcome], *arguments: object) -> Outcome:
        """Call a function of a module's top level; arguments and outcome are plain data."""
        request = inspect.getfile(function), function.__qualname__, arguments
        pickle.dump(request, self._requests)
        self._requests.flush()
        outcome: Outcome | BaseException = pickle.load(self._answers)  # noqa: S301 - from our own process
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._directory.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve() -> None:
    """Answer calls until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a print of a function does not mix with the answers
    modules: dict[str, dict[str, Callable[..., object]]] = {}
    while True:
        try:
            file, name, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
        except EOFError:
            return
        if file not in modules:
            modules[file] = runpy.run_path(file)
        try:
            outcome = modules[file][name](*arguments)
        except Exception as error:  # noqa: BLE001 - it is raised in the other process
            outcome = RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump(outcome, out)
        out.flush()


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))
    serve()
