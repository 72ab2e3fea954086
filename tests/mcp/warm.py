"""Start `agentfs` in processes that have imported the SDK already: the import takes longer than most tests.

    python warm.py SOCKET                    # the parent of the servers; it ends with its standard input
    python warm.py SOCKET mcp --root DIR …   # as `python -m agentfs mcp --root DIR …`

The second command passes its streams, environment and directory to the first, which forks a server. Then it
passes signals on, and ends with the status of the server.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(address: str) -> list[str]:
    """Serve requests; returns in each server, with its arguments."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(100)
    os.write(1, b"ready\n")
    while listening in select.select([listening, 0], [], [])[0]:
        connection, _ = listening.accept()
        if os.fork():
            connection.close()
            continue
        listening.close()
        request, streams, *_ = socket.recv_fds(connection, 2**20, 3)
        arguments, environment, directory = json.loads(request)
        server = os.fork()
        if not server:
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(directory)
            return arguments
        os.closerange(0, 3)
        for stream in streams:
            os.close(stream)
        connection.send(str(server).encode())
        if connection in select.select([connection, os.pidfd_open(server)], [], [])[0]:
            os.kill(server, signal.SIGKILL)  # the second command was killed
        else:
            connection.send(str(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])).encode())
        os._exit(0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)


def ask(address: str, arguments: list[str]) -> int:
    """Have a server started; returns its exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(connection, [request], [0, 1, 2])
    os.closerange(0, 3)
    server = int(connection.recv(20))
    for number in SIGNALS:
        signal.signal(number, lambda number, _: os.kill(server, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return int(connection.recv(20))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        os._exit(ask(sys.argv[1], sys.argv[2:]))
    import agentfs.mcp  # noqa: F401 - here, because the second command must start fast
    from agentfs.cli import main

    gc.freeze()  # a collection would write to, and so copy, all memory that the processes share
    sys.exit(main(serve(sys.argv[1])))
