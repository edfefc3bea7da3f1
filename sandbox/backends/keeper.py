"""Runs one command without a sandbox and ends all that it started. Started as a program of its own; see `unsandboxed`.

    keeper.py LIFE STATUS ENVIRONMENT FOLDER COMMAND…

Says with an empty line that it stands, reads one line, and starts the command in a session of its own in FOLDER with the
variables of the descriptor ENVIRONMENT. What the command leaves behind becomes this process's child, because it is a
subreaper. When the command ends, or the other end of the descriptor LIFE is closed, all of it is killed; then the exit
code goes to the descriptor STATUS. Uses the standard library only, and little of it: its start is part of each run.
"""

import ctypes
import os
import select
import signal
import sys
import time

_SUBREAPER = 36
_END_SECONDS = 5.0


def _children() -> list[int]:
    children: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        current = waiting.pop()
        try:
            for thread in os.listdir(f"/proc/{current}/task"):
                with open(f"/proc/{current}/task/{thread}/children", "rb") as stream:
                    below = [int(child) for child in stream.read().split()]
                children.extend(below)
                waiting.extend(below)
        except OSError:
            continue
    return children


def _end_all() -> None:
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        for pid in _children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _start(environment: int, folder: str, command: list[str], others: tuple[int, ...]) -> int:
    with open(environment, "rb") as stream:
        words = [word.partition(b"=") for word in stream.read().split(b"\0") if word]
    variables = {name: value for name, _, value in words}
    child = os.fork()
    if child:
        return child
    try:
        for fd in others:
            os.close(fd)
        os.setsid()
        os.chdir(folder)
        for number in signal.valid_signals():
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        os.execve(command[0], command, variables)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def main(words: list[str]) -> None:
    """Run it; ends this process."""
    life, status, environment = (int(word) for word in words[:3])
    if ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("this kernel lets no process keep what its children leave")
    os.write(1, b"\n")
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            return
        line += piece
    child = _start(environment, words[3], words[4:], (life, status))
    # the streams are the command's alone: their ends must be seen
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    ended = os.pidfd_open(child)
    # whoever starts this may have thousands of files open, and select takes no descriptor above 1,023
    waiting = select.poll()
    for fd in (ended, life):
        waiting.register(fd, select.POLLIN)
    waiting.poll()
    waiting.unregister(life)
    code = None
    if waiting.poll(0):
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _end_all()
    if code is not None:
        told = (code if code >= 0 else 128 - code, max(0, -code))
        os.write(status, b'{"exit-code": %d, "signal": %d}\n' % told)


if __name__ == "__main__":
    main(sys.argv[1:])
