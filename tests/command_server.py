"""Commands and scripts in forks of one process that has done its imports.

Tests and pages of the documentation run hundreds of commands. Most of what a short one takes is
importing numpy, scipy and torch; forked, it begins with them loaded. Otherwise it is a process
like any other, with its own arguments, folder, environment, streams and exit code. That commands
import no more than they need is what `test_imports` looks after.

`sightline(...)` runs a command and gives what it printed. `program()` is the path of a program that
asks a server for a fork and hands it its streams; `program("python")` does so for a script, `-c`
and a row of a reproduction, and is Python itself for all else. Killing one of these programs does
not kill its fork: what is to be killed has to be started as a process of its own.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

# Not onnxruntime: it may start threads when it is imported, and a fork with threads can hang.
_HEAVY = (
    "numpy", "scipy.optimize", "PIL.Image", "pysbd", "torch", "sightline.training",
    "matplotlib.figure", "statsmodels.regression.linear_model",
)  # fmt: skip
_ROW = ["-m", "sightline.reproduction.row_process"]
_STREAMS = 3
_SHARED = "COMMAND_SERVER"
_CLIENT = """#!{python} -IS
import json, os, socket, sys
arguments = {before!r} + sys.argv[1:]
first = "".join(arguments[:1])
if not (first == "-c" or first.endswith(".py") or arguments[:2] in {modules!r}):
    os.execv({python!r}, [{python!r}, *arguments])
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
request = {{"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}}
socket.send_fds(server, [b"fds"], [0, 1, 2])
server.sendall(json.dumps(request).encode())
server.shutdown(socket.SHUT_WR)
sys.exit(int(server.recv(8) or b"1"))
"""


def sightline(*arguments, expect=0, **options):
    """Run a command that has to end with the code `expect`; gives what it printed and said."""
    # What is set in a process before it starts, such as a limit, does not reach a fork elsewhere.
    own = [sys.executable, "-m", "sightline"] if "preexec_fn" in options else [program()]
    done = subprocess.run(
        [*own, *map(str, arguments)],
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"},
        **options,
    )
    words = done.stderr.decode()
    assert "Traceback" not in words
    assert done.returncode == expect, words
    return done.stdout.decode(), words


def program(name="sightline"):
    """A program that is run by forks."""
    return programs() / name


@cache
def programs():
    """The folder of both; their server lasts as long as this process or the one that shares it."""
    if _SHARED in os.environ:
        return Path(os.environ[_SHARED])
    kept = ExitStack()
    atexit.register(kept.close)
    folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="sightline-")))
    kept.enter_context(_server(folder))
    return folder


def share_programs():
    """Let the processes that this one starts use its server instead of one of their own each."""
    os.environ[_SHARED] = str(programs())


@contextmanager
def _server(folder):
    """Run a server as long as the context lasts; it is reached by two programs in the folder."""
    python, modules, address = folder / "python", [["-m", "sightline"], _ROW], f"{folder}/commands"
    for client, before in ((python, []), (folder / "sightline", modules[0])):
        text = _CLIENT.format(
            python=sys.executable, address=address, before=before, modules=modules
        )
        client.write_text(text)
        client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        # Here, so that nobody has to wait for its imports who has no command yet.
        listener.bind(address)
        listener.listen()
        server = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno()), str(python)],
            stdin=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # threads would not come along in a fork
            pass_fds=[listener.fileno()],
        )
    try:
        yield
    finally:
        server.communicate()


def serve(number):
    """Fork for each connection, and return in the fork with it; ends with standard input."""
    listener = socket.socket(fileno=number)
    # Its end is the end of whoever started the server, however that came.
    while sys.stdin.buffer not in select.select([listener, sys.stdin.buffer], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return connection
        connection.close()
        while _reap():
            pass
    os._exit(0)


def _reap():
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def run_request(connection, python):
    """Run what a request asks for in one more fork, and answer with its exit code."""
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
    code = 0
    try:
        _run(request["arguments"], python)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    # Not the whole end of an interpreter, which takes seconds to put away what is loaded.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError):  # closed, or nobody reads it any more
            stream.flush()
    os._exit(code)


def _run(arguments, python):
    """Do what Python does with its arguments."""
    kind, *rest = arguments
    if kind == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        sys.argv, sys.path[0] = rest, ""
        if rest[1:2] == ["reproduce"]:
            sys.executable = python  # its rows, too, are forks
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = arguments, str(Path(kind).resolve().parent)
        runpy.run_path(kind, run_name="__main__")


def _prepare():
    """Import what commands import, and load the compiled assignment."""
    for name in ("sightline.cli", *_HEAVY):
        with suppress(ImportError):  # an extra that is not installed; the commands say so
            importlib.import_module(name)
    import numpy as np

    from sightline.assignment import assign_many

    for kind in (np.float32, np.float64):
        assign_many(np.zeros((1, 2, 2), kind), [2], [2])


if __name__ == "__main__":
    _prepare()
    if sys.argv[1:]:  # without, all that had to be compiled is
        gc.freeze()  # what is loaded stays shared between the forks
        run_request(serve(int(sys.argv[1])), sys.argv[2])
