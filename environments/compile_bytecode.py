"""Run inside the sandbox by the environment's interpreter with `-I -S`: compiles `/env`, so that importing need not.

A program of its own: it imports nothing of the project, and with `-S` nothing of the environment runs. Its processes each
take every n-th file; one that a hostile source brings down costs its own files their bytecode and nothing else.
"""

import os
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source
from marshal import dumps

sys.setrecursionlimit(2000)


def sources(top: str) -> list[tuple[int, str]]:
    """(size, path) of every source file below a folder, the largest first."""
    files: list[tuple[int, str]] = []
    waiting = [top]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.name.endswith(".py") and entry.is_file(follow_symlinks=False):
                    files.append((entry.stat().st_size, entry.path))
    return sorted(files, reverse=True)


def compile_file(path: str) -> None:
    """Writes the bytecode of one file beside it; a file that is no Python is left alone."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
            facts = os.fstat(stream.fileno())
        code = compile(data, path, "exec", dont_inherit=True)
        # PEP 552: no flags, so the time and size of the source tell whether it still fits
        stamps = (0, int(facts.st_mtime) & 0xFFFFFFFF, facts.st_size & 0xFFFFFFFF)
        content = MAGIC_NUMBER + b"".join(number.to_bytes(4, "little") for number in stamps) + dumps(code)
        target = cache_from_source(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as stream:
            stream.write(content)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError, UnicodeError, OverflowError):
        pass


def main(top: str) -> None:
    """Compiles everything with as many processes as there are processors, at most eight."""
    files = [path for _, path in sources(top)]
    count = max(1, min(8, len(os.sched_getaffinity(0)), len(files) // 20))
    children: list[int] = []
    for number in range(1, count):
        child = os.fork()
        if child == 0:
            for path in files[number::count]:
                compile_file(path)
            os._exit(0)
        children.append(child)
    for path in files[0::count]:
        compile_file(path)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1])
