"""The helpers of the harness do what their names say."""

import subprocess
import time

import pytest

from tests.conftest import needs
from tests.remote.harness import Fault, Proxy, Sshd, in_bubblewrap

LINE = b"a line\n"


def test_a_proxy_forwards_everything_and_delays_both_directions():
    with Proxy(["cat"], delay=0.05) as proxy:
        stream = proxy.open()
        started = time.monotonic()
        stream.write(LINE)
        assert stream.readline() == LINE
        assert time.monotonic() - started >= 0.1
        assert proxy.passed == [{"to_far": len(LINE), "from_far": len(LINE)}]


@pytest.mark.parametrize("after", range(len(LINE) + 1))
@pytest.mark.parametrize("direction", ["to_far", "from_far"])
def test_a_proxy_cuts_after_each_byte(direction, after):
    with Proxy(["cat"], Fault("cut", direction, after)) as proxy:
        stream = proxy.open()
        stream.write(LINE)
        # cat may still answer bytes that arrived before the cut.
        assert stream.readline() in {b"", LINE[:after]}
        assert proxy.passed[0][direction] == after
        again = proxy.open()
        again.write(LINE)
        assert again.readline() == LINE


def test_a_proxy_swallows_and_stays_open():
    with Proxy(["cat"], Fault("swallow", "from_far", 3)) as proxy:
        stream = proxy.open()
        stream._socket.settimeout(0.3)
        stream.write(LINE)
        with pytest.raises(TimeoutError):
            stream._file.readline()
        stream.write(LINE)
        assert proxy.passed == [{"to_far": len(LINE), "from_far": 3}]


@needs("sshd")
@needs("ssh")
@pytest.mark.parametrize(
    ("options", "shown"), [([], b"a  b\n"), (['command="echo fixed"'], b"fixed\n")], ids=["shell", "fixed"]
)
def test_sshd_runs_a_command_through_a_shell_or_a_fixed_one(tmp_path, options, shown):
    with Sshd(tmp_path, *options) as sshd:
        done = subprocess.run([*sshd.command(), "echo", "'a  b'"], capture_output=True, check=True)
    assert done.stdout == shown


@needs("bwrap")
def test_bubblewrap_shows_one_tree(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    words = in_bubblewrap(tmp_path)
    assert subprocess.run([*words, "ls", "/tree"], capture_output=True, check=True).stdout == b"a.txt\n"
    assert subprocess.run([*words, "ls", str(tmp_path)], capture_output=True, check=False).returncode
