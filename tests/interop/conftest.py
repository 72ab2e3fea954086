"""The environments of the frameworks, and the process in each that runs the programs of the tests.

The packages are fetched once, by uv, into environments of their own in pytest's cache.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.conftest import ISOLATED, program
from tests.interop.stand_in import serve

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="session")
def python_of(request):
    """Returns a function from a list of requirements to the interpreter of an environment that has them."""

    def interpreter(requirements):
        listed = HERE / requirements
        key = hashlib.sha256(listed.read_bytes() + sys.version.encode()).hexdigest()[:12]
        place = request.config.cache.mkdir(f"{listed.stem}-{key}")
        python = place / "bin" / "python"
        uv = [sys.executable, "-m", "uv"]
        with open(place.with_suffix(".lock"), "w") as lock:  # several processes of pytest may want it
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place / "complete").exists():
                subprocess.run(
                    [*uv, "venv", "-q", "--clear", "--python", sys.executable, place], check=True, timeout=60
                )
                install = [*uv, "pip", "install", "-q", "--python", python, "-r", listed]
                subprocess.run(install, check=True, timeout=600)
                (place / "complete").touch()
        return str(python)

    return interpreter


@pytest.fixture(scope="session")
def stand_ins():
    """Serve the stand-ins of the APIs; an environment in which the providers' packages find them."""
    server = serve()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"), "none")
    yield {
        **os.environ, **keys, "PYTHONPATH": f"{ISOLATED}{os.pathsep}{ROOT}", "PYTHONWARNINGS": "ignore",
        "NO_PROXY": "127.0.0.1",
        "OPENAI_BASE_URL": f"{address}/v1", "ANTHROPIC_BASE_URL": address, "GOOGLE_GEMINI_BASE_URL": address,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }  # fmt: skip
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def run(python_of, stand_ins, tmp_path_factory):
    """Returns a function that runs a program where the frameworks are installed, and returns what it printed.

    All programs of an environment run in one process, because the imports take longest.
    """
    hosts = {}

    def host(requirements):
        python = python_of(requirements)
        commands = tmp_path_factory.mktemp("bin")
        (commands / "agentfs").write_text(f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec {python} -m agentfs \"$@\"\n")
        (commands / "agentfs").chmod(0o755)
        path = [str(commands), os.path.dirname(program("rg") or ""), stand_ins["PATH"]]
        settings = {"XDG_CONFIG_HOME": str(tmp_path_factory.mktemp("settings"))}  # `llm` makes its directory
        environment = {**stand_ins, **settings, "PATH": os.pathsep.join(path)}
        return subprocess.Popen(
            [python, HERE / "host.py"], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(directory, *command, requirements="frameworks.txt"):
        process = hosts.get(requirements) or hosts.setdefault(requirements, host(requirements))
        process.stdin.write(json.dumps([str(directory), *map(str, command)]) + "\n")
        process.stdin.flush()
        late = threading.Timer(120, process.kill)
        late.start()
        answer = process.stdout.readline()
        late.cancel()
        if not answer:
            stop(hosts.pop(requirements))
            pytest.fail("the process died, or the program did not end")
        printed, failure = json.loads(answer)
        assert failure is None, failure
        return printed

    def stop(process):
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait(30)

    yield run
    for process in hosts.values():
        stop(process)
