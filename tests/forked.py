"""The command line in a forked process: a process of its own, without the time that Python takes to start."""

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO

from agentfs.cli import main
from scripts.forked_python import load

load()


def run_command(*arguments: str, cwd: Path, stdin: str | None = None) -> CompletedProcess[str]:
    """Run `agentfs` with arguments, and return its status and what it wrote; None is an empty device."""
    with (
        tempfile.TemporaryFile() if stdin is not None else open(os.devnull, "rb") as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        if stdin is not None:
            given.write(stdin.encode())
            given.seek(0)
        child = forked(lambda: main(arguments), (given.fileno(), out.fileno(), err.fileno()), cwd)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return CompletedProcess(arguments, status, *map(text_of, (out, err)))


def text_of(file: IO[bytes]) -> str:
    """Return what was written to a file; `os.fsencode` gives the bytes again."""
    file.seek(0)
    return os.fsdecode(file.read())


def forked(call: Callable[[], object], descriptors: tuple[int, int, int], cwd: Path) -> int:
    """Call a function in a forked process, with descriptors for its streams; return the id of the process."""
    child = os.fork()
    if child == 0:
        _become(descriptors, cwd)
        _leave(call)
    return child


def _become(descriptors: tuple[int, int, int], cwd: Path) -> None:
    os.chdir(cwd)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8")  # noqa: SIM115 - the process ends
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8")  # noqa: SIM115 - as above
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False),  # noqa: SIM115 - as above
        encoding="utf-8",
        errors="backslashreplace",
    )


def _leave(call: Callable[[], object]) -> None:
    """End the process with the status of a call, as `python -m agentfs` does."""
    status: object = 1
    try:
        status = call()
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # noqa: BLE001 - it is shown as Python shows it
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)
