"""`sightline` commands in forks of one process that has done its imports.

Pages of the documentation show some eighty commands. Most of what a short one takes is importing
numpy, scipy and torch; forked, it begins with them loaded. Otherwise it is a process
like any other, with its own arguments, folder, environment, streams and exit code. That commands
import no more than they need is what `test_imports` looks after.

`command_server(folder)` puts a program `sightline` into the folder, which asks the server for a
fork and hands it its streams.
"""

import atexit
import gc
import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

# Not onnxruntime: it may start threads when it is imported, and a fork with threads can hang.
_HEAVY = ("numpy", "scipy.optimize", "PIL.Image", "pysbd", "torch")
_STREAMS = 3
_CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
request = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
socket.send_fds(server, [b"fds"], [0, 1, 2])
server.sendall(json.dumps(request).encode())
server.shutdown(socket.SHUT_WR)
sys.exit(int(server.recv(8) or b"1"))
"""


@contextmanager
def command_server(folder):
    """Run a server as long as the context lasts; commands reach it by `folder`/sightline."""
    # Not in `folder`, whose name may be longer than an address can be.
    place = tempfile.mkdtemp(prefix="sightline-")
    address = f"{place}/commands"
    client = Path(folder) / "sightline"
    client.write_text(_CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, __file__, address], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as server:
        try:
            assert server.stdout.readline() == b"ready\n"
            yield client
        finally:
            server.terminate()
            shutil.rmtree(place, ignore_errors=True)


def serve(address):
    """Fork for each connection; returns in the fork, with the connection and its request."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    os.write(1, b"ready\n")
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return connection
        connection.close()
        while _reap():
            pass


def _reap():
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def run_command(connection):
    """Run the command of a request in one more fork, and answer with its exit code."""
    _, streams, _, _ = socket.recv_fds(connection, 3, _STREAMS)
    request = json.loads(b"".join(iter(lambda: connection.recv(2**16), b"")))
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(code if code >= 0 else 128 - code).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["sightline", *request["arguments"]]
    from sightline.cli import main

    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    # Not the whole end of an interpreter, which takes seconds to put away what is loaded.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError):  # closed, or nobody reads it any more
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in ("sightline.cli", *_HEAVY):
        with suppress(ImportError):  # an extra that is not installed; the commands say so
            importlib.import_module(name)
    gc.freeze()  # what is loaded stays shared between the forks
    run_command(serve(sys.argv[1]))
