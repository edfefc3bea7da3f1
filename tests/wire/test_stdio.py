"""Standard streams and the process at the other end: nothing is lost, mixed or waited for in vain."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
import threading
import time

import pytest

from tamis.server.wire import stdio as watching
from tamis.server.wire.stdio import MAX_QUEUED_BYTES, Outbox, QueuedWriter, Writer, start_reader, watch_process
from tests.waiting import until


def collect(descriptor: int) -> tuple[list[bytes], threading.Event]:
    chunks: list[bytes] = []
    ended = threading.Event()
    start_reader(descriptor, chunks.append, ended.set)
    return chunks, ended


def raised(descriptor: int) -> int:
    """The same file under a number that only a process with very many open files has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < 2100:
        pytest.skip(f"this machine lets no process open more than {hard} files")
    if 0 <= soft < 2100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2100, hard))
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 2000)
    os.close(descriptor)
    return high


@pytest.mark.parametrize("kind", [Writer, QueuedWriter, Outbox])
def test_streams_may_have_descriptors_of_any_number(kind: type[Writer] | type[QueuedWriter] | type[Outbox]) -> None:
    # a reader and a writer that waited by select() ended their threads here
    incoming, outgoing = (raised(end) for end in os.pipe())
    os.set_blocking(incoming, False)
    os.set_blocking(outgoing, False)
    message = b"x" * 1_000_000
    writer = kind(outgoing)
    thread = threading.Thread(target=writer.write, args=(message,), daemon=True)
    thread.start()
    time.sleep(0.05)  # so that the pipe is full, and the writer waits
    chunks, ended = collect(incoming)
    thread.join()
    if not isinstance(writer, Writer):
        writer.close(600)
    os.close(outgoing)
    ended.wait()
    os.close(incoming)
    assert b"".join(chunks) == message


@pytest.mark.parametrize("is_blocking", [True, False])
def test_messages_of_several_threads_arrive_whole_also_over_a_pipe_that_does_not_block(is_blocking: bool) -> None:
    incoming, outgoing = os.pipe()
    os.set_blocking(incoming, is_blocking)
    os.set_blocking(outgoing, is_blocking)
    chunks, ended = collect(incoming)
    writer = Writer(outgoing)
    messages = [bytes([letter]) * 300_000 + b"\n" for letter in b"abcd"]
    threads = [threading.Thread(target=writer.write, args=(message,)) for message in messages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(outgoing)
    ended.wait()
    os.close(incoming)
    assert sorted(b"".join(chunks).splitlines(keepends=True)) == messages


@pytest.mark.parametrize("kind", [Writer, QueuedWriter])
def test_a_reader_that_has_gone_is_not_an_error(kind: type[Writer] | type[QueuedWriter]) -> None:
    incoming, outgoing = os.pipe()
    os.close(incoming)
    writer = kind(outgoing)
    for _ in range(3):
        writer.write(b"x")
    if isinstance(writer, QueuedWriter):
        writer.close(600)
        assert writer.write(b"x") is False
    else:
        assert writer.broken
    os.close(outgoing)


def test_what_may_be_dropped_is_dropped_and_counted_and_nothing_else() -> None:
    incoming, outgoing = os.pipe()
    writer = QueuedWriter(outgoing)
    writer.write(b"a" * 1_000_000)  # more than a pipe holds, so that all that follows waits
    until(lambda: writer._busy)
    writer.write(b"b" * (MAX_QUEUED_BYTES + 1))
    assert writer.write(b"log", droppable=True) is False
    assert writer.write(b"reply") is True
    assert writer.dropped == 1
    chunks, ended = collect(incoming)
    writer.close(600)
    os.close(outgoing)
    ended.wait()
    os.close(incoming)
    data = b"".join(chunks)
    assert (len(data), data[-6:]) == (1_000_000 + MAX_QUEUED_BYTES + 1 + 5, b"breply")


def test_a_small_answer_is_written_before_it_is_said_to_be() -> None:
    """No other thread has to come to it first (issue 18)."""
    incoming, outgoing = os.pipe()
    os.set_blocking(incoming, False)
    writer = QueuedWriter(outgoing)
    assert writer.write(b"answer\n")
    assert os.read(incoming, 100) == b"answer\n"
    writer.close(600)
    os.close(incoming)
    os.close(outgoing)


def test_messages_keep_their_order_however_each_is_written() -> None:
    """Small ones that could be written at once, behind large ones that a thread still writes, to a client that reads now and then."""
    incoming, outgoing = os.pipe()
    writer = QueuedWriter(outgoing)
    messages = [b"%d:" % number + b"x" * (200_000 if number % 7 == 0 else 30) + b"\n" for number in range(200)]
    chunks: list[bytes] = []

    def read() -> None:
        while data := os.read(incoming, 50_000):
            chunks.append(data)
            time.sleep(0.0005)

    reading = threading.Thread(target=read)
    reading.start()
    for number, message in enumerate(messages):
        assert writer.write(message)
        if number % 10 == 0:
            time.sleep(0.005)
    writer.close(600)
    os.close(outgoing)
    reading.join()
    os.close(incoming)
    assert b"".join(chunks).splitlines(keepends=True) == messages


def test_a_small_message_does_not_overtake_what_the_thread_has_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    incoming, outgoing = os.pipe()
    writer = QueuedWriter(outgoing)
    taken, goes_on, write = threading.Event(), threading.Event(), writer._writer.write

    def later(data: bytes) -> None:
        taken.set()
        goes_on.wait()
        write(data)

    monkeypatch.setattr(writer._writer, "write", later)
    large = b"a" * 5_000 + b"\n"
    writer.write(large)  # more than is written at once
    taken.wait()
    writer.write(b"b\n")
    goes_on.set()
    writer.close(600)
    os.close(outgoing)
    chunks, ended = collect(incoming)
    ended.wait()
    os.close(incoming)
    assert b"".join(chunks) == large + b"b\n"


def test_a_client_that_does_not_read_holds_nobody_up() -> None:
    incoming, outgoing = os.pipe()
    writer = QueuedWriter(outgoing)
    for _ in range(2_000):  # nobody reads before the last of them is written
        assert writer.write(b"y" * 200)
    chunks, ended = collect(incoming)
    writer.close(600)
    os.close(outgoing)
    ended.wait()
    os.close(incoming)
    assert b"".join(chunks) == b"y" * 400_000


@pytest.mark.parametrize("has_pidfds", [True, False])
def test_the_end_of_a_process_is_told_once(has_pidfds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_pidfds:
        monkeypatch.delattr(os, "pidfd_open")
        monkeypatch.setattr(watching, "_POLL_SECONDS", 0.01)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    told: list[int] = []
    ended = threading.Event()

    def tell() -> None:
        told.append(child.pid)
        ended.set()

    assert watch_process(child.pid, tell)
    assert not ended.wait(0.05)
    child.communicate(b"\n")
    ended.wait()
    time.sleep(0.05)
    assert len(told) == 1
    assert not watch_process(child.pid, lambda: None)


@pytest.mark.parametrize("number", [2**31 - 1, 2**40])
def test_a_process_that_cannot_be_is_not_watched(number: int) -> None:
    assert not watch_process(number, lambda: None)
