"""Processes edit one tree behind a proxy that loses answers, and are killed: no acknowledged line is lost."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentfs.fs import is_temporary_name
from agentfs.store import StoredTree
from tests.store.conftest import files, put
from tests.store.proxy import FAULTS, FaultyProxy

ROOT = Path(__file__).parents[2]
_WORKERS, _FILES = 8, 200
_KILLS, _LINES = 5, 10  # at least so many kills, with so many acknowledged lines before each
_LINE = re.compile(r"(w\d-\d+-\d+) v(\d+)")


@pytest.mark.full
@pytest.mark.timeout(3600)  # only ends a run that hangs: a busy machine takes long for the lines
@pytest.mark.parametrize("seconds", [0, pytest.param(1800, marks=pytest.mark.long)], ids=["short", "long"])
def test_no_acknowledged_line_is_lost(server, tmp_path, seconds):
    """A worker is killed after each `_LINES` acknowledged lines, however long a busy machine takes."""
    seconds = float(os.environ.get("AGENTFS_CAMPAIGN_SECONDS", seconds))
    bucket = server.bucket()
    proxy = FaultyProxy(server.endpoint, seed=random.randrange(2**32))
    first = StoredTree(f"s3://{bucket}", tmp_path / "first", options=server.options)
    for number in range(_FILES):
        put(first, {f"f{number}.txt": "".join(f"base {number} {line}\n" for line in range(5))})
    first.push()
    stop = tmp_path / "stop"
    processes: dict[str, subprocess.Popen] = {}

    def start(name: str) -> None:
        log = tmp_path / f"{name}.log"
        command = [sys.executable, "-m", "tests.store.campaign_worker", name, proxy.endpoint, bucket]
        processes[name] = subprocess.Popen([*command, tmp_path / name, log, stop], cwd=ROOT)

    def wait_for_lines(count: int) -> None:
        while sum(log.read_bytes().count(b"\n") for log in tmp_path.glob("w*.log")) < count:
            ended = {name: process.poll() for name, process in processes.items()}
            assert {*ended.values()} == {None}, f"a worker ended by itself: {ended}"
            time.sleep(0.05)

    for number in range(_WORKERS):
        shutil.copytree(first, tmp_path / f"w{number}")  # saves their first pull
        start(f"w{number}")
    kills = 0
    try:
        proxy.faults = dict(FAULTS)
        end = time.monotonic() + seconds
        while kills < _KILLS or time.monotonic() < end:
            wait_for_lines(_LINES * (kills + 1))
            time.sleep(random.uniform(0, 1))  # so that any moment of a pull or push may be the last
            name = random.choice([*processes])
            processes[name].send_signal(signal.SIGKILL)
            kills += 1
            status = processes[name].wait()
            assert status == -signal.SIGKILL, f"{name} ended with {status}"
            start(name)
        proxy.faults = {}
        stop.touch()
        for name, process in processes.items():
            assert process.wait() == 0, name
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
        proxy.__exit__()
    acknowledged: dict[str, tuple[int, str]] = {}
    for log in tmp_path.glob("w*.log"):
        for line in log.read_text().splitlines():
            id_, version, path = line.split()
            acknowledged[id_] = max((int(version), path), acknowledged.get(id_, (0, path)))
    last = StoredTree(f"s3://{bucket}", tmp_path / "last", options=server.options)
    assert last.pull().conflicts == ()
    found: dict[str, tuple[int, str]] = {}
    for path, data in files(last).items():
        for id_, version in _LINE.findall(data.decode()):
            assert id_ not in found, f"{id_} is there twice: {path}"
            found[id_] = int(version), path
        number = path[1:-4]
        assert data.decode().count(f"base {number} ") == 5
    lost = {id_: each for id_, each in acknowledged.items() if found.get(id_, (0, "")) < each}
    assert lost == {}
    for number in range(_WORKERS):  # a killed worker may leave a temporary, which is never pushed
        here = {path for path in files(tmp_path / f"w{number}") if not is_temporary_name(path)}
        assert here == files(last).keys()
    print(f"{len(acknowledged)} lines acknowledged, {len(found)} found, {kills} kills, {dict(proxy.seen)}")  # noqa: T201 - of a long run
    assert len(acknowledged) > _LINES
