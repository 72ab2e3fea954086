"""Helpers for tests of remote workspaces: a slow connection, a private sshd, a container.

As a script with seconds and a command, it is a proxy that delays both directions, for benchmarks.
"""

import io
import os
import pwd
import queue
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

CHUNK = 65536


class Proxy:
    """Connects each client of its loopback port to another port, or to a command run for it, with a delay."""

    def __init__(self, far: int | Sequence[str], delay: float) -> None:
        """Listen. `delay` is per direction."""
        self.far, self.delay = far, delay
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in `accept`
        self._listening.close()
        for each in self._sockets:
            end(each)
        for process in self._processes:
            process.kill()
            process.wait()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = self._listening.accept()
                far = self._connect()
                self._sockets += [near, far]
                for source, target in ((near, far), (far, near)):
                    with suppress(OSError):
                        source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    delayed: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                    threading.Thread(target=self._receive, args=(source, delayed), daemon=True).start()
                    threading.Thread(target=self._send_late, args=(delayed, target), daemon=True).start()

    def _connect(self) -> socket.socket:
        if isinstance(self.far, int):
            return socket.create_connection(("127.0.0.1", self.far))
        ours, theirs = socket.socketpair()
        with theirs:
            started = subprocess.Popen(self.far, stdin=theirs, stdout=theirs, start_new_session=True)
            self._processes.append(started)
        return ours

    def _receive(self, source: socket.socket, delayed: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(CHUNK)
            except OSError:
                data = b""
            delayed.put((time.monotonic() + self.delay, data))

    def _send_late(self, delayed: "queue.SimpleQueue[tuple[float, bytes]]", target: socket.socket) -> None:
        with suppress(OSError):
            while True:
                due, data = delayed.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)


def end(connected: socket.socket) -> None:
    """End a connection, even for a thread that waits on it."""
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
    connected.close()


class Sshd:
    """Debian's sshd on loopback with its own configuration and keys."""

    def __init__(self, directory: Path, key_options: str = "") -> None:
        """Start it; `key_options` come before the client's key in authorized_keys, such as `command="…"`."""
        self.directory = directory
        user, *_, shell = pwd.getpwuid(os.geteuid())
        if shell.endswith(("nologin", "false")):
            pytest.skip(f"{user} has no shell to log in with")
        for name in ("host_key", "client_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
            subprocess.run(command, check=True)
        key = (directory / "client_key.pub").read_text()
        (directory / "authorized_keys").write_text(f"{key_options} {key}".lstrip())
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        (directory / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {directory}/host_key\n"
            f"AuthorizedKeysFile {directory}/authorized_keys\nPidFile none\nStrictModes no\n"
            "UsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nLogLevel ERROR\n"
            "Subsystem sftp internal-sftp\nMaxStartups 100\nMaxSessions 200\n"
        )
        (directory / "known_hosts").write_text(f"far {(directory / 'host_key.pub').read_text()}")
        (directory / "ssh_config").write_text(
            f"Host far\n  HostName 127.0.0.1\n  HostKeyAlias far\n  User {user}\n"
            f"  IdentityFile {directory}/client_key\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {directory}/known_hosts\n  BatchMode yes\n  LogLevel ERROR\n"
        )
        sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
        self._log = (directory / "sshd.log").open("wb")
        self._process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(directory / "sshd_config")], stderr=self._log, start_new_session=True
        )
        self._wait()

    def command(self, port: int | None = None) -> list[str]:
        """Return the prefix of a remote command, like `ssh host`; `port` is that of a proxy."""
        return ["ssh", "-F", str(self.directory / "ssh_config"), "-p", str(port or self.port), "far"]

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _wait(self) -> None:
        for _ in range(100):
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            time.sleep(0.05)
        self.close()
        raise RuntimeError((self.directory / "sshd.log").read_text())


def in_bubblewrap(root: Path, *read_only: Path) -> list[str]:
    """Return the prefix that runs a command in bubblewrap: its own `/tmp`, no network, one tree."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", *("--proc", "/proc", "--dev", "/dev")]
    words += ["--tmpfs", "/tmp"]
    for each in ("/usr", "/lib", "/lib64", "/bin", "/etc", *map(str, read_only)):
        if os.path.exists(each):
            words += ["--ro-bind", each, each]
    return [*words, "--bind", str(root), "/tree", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--"]


def in_container(engine: str, root: Path, *read_only: str) -> list[str]:
    """Return the prefix that runs a command in a container of docker or podman, with one tree.

    No image is fetched: the image has only directories and links, and the host's `/usr` is mounted.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("dev", "etc", "proc", "sys", "tmp", "usr", "tree"):
            made = tarfile.TarInfo(name)
            made.type, made.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(made)
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
    command = [engine, "import", "-", "agentfs-test-empty"]
    subprocess.run(command, input=content.getvalue(), capture_output=True, check=False)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # raising it needs a right that root may lack
    mounts = [word for each in read_only for word in ("-v", f"{each}:{each}:ro")]
    return [
        *(engine, "run", "--rm", "-i", "--network=none", "--cgroupns=private"),
        *(f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=4096:4096"),
        *("-v", "/usr:/usr:ro", "-v", f"{root}:/tree", *mounts),
        "agentfs-test-empty",
    ]


if __name__ == "__main__":
    proxy = Proxy(sys.argv[2:], delay=float(sys.argv[1]))
    sys.stdout.write(f"{proxy.port}\n")
    sys.stdout.flush()
    sys.stdin.read()
