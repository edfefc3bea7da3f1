"""Where the session's work comes from: nothing is lost, mixed or late, whichever thread reads (language-server, Faults)."""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from collections.abc import Iterator

import pytest

from tamis.server.lsp import input as module
from tamis.server.lsp.input import Bodies, Input, Work
from tamis.server.wire.framing import encode_frame
from tests.waiting import until


class Source:
    """An input behind a pipe, and what it said had arrived."""

    def __init__(self) -> None:
        incoming, self.pipe = os.pipe()
        self.incoming = incoming
        self.arrived: list[bytes] = []
        self.input = Input(incoming, self._arrived)

    def _arrived(self, bodies: Bodies) -> None:
        self.arrived += [body for body in bodies if isinstance(body, bytes)]

    def send(self, *bodies: bytes) -> None:
        data = memoryview(b"".join(encode_frame(body, "headers") for body in bodies))
        while data:
            data = data[os.write(self.pipe, data) :]

    def end(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1

    def close(self) -> None:
        self.input.close()
        self.end()
        os.close(self.incoming)


@pytest.fixture
def source() -> Iterator[Source]:
    made = Source()
    yield made
    made.close()


def bodies_of(work: Work) -> list[bytes]:
    assert isinstance(work, list)
    return [body for body in work if isinstance(body, bytes)]


def test_what_arrives_while_nothing_is_done_wakes_the_session(source: Source) -> None:
    threading.Timer(0.05, source.send, (b"a", b"b")).start()
    assert bodies_of(source.input.get(600)) == [b"a", b"b"]


def test_a_message_in_two_pieces_is_one_message(source: Source) -> None:
    data = encode_frame("日本 😀".encode(), "headers")
    os.write(source.pipe, data[:-3])
    threading.Timer(0.05, os.write, (source.pipe, data[-3:])).start()
    assert bodies_of(source.input.get(600)) == ["日本 😀".encode()]


def test_what_is_posted_wakes_the_session(source: Source) -> None:
    threading.Timer(0.05, source.input.post, (print,)).start()
    assert source.input.get(600) is print


def test_silence_ends_when_its_time_is_over(source: Source) -> None:
    for patience in (0.0, 0.02):
        with pytest.raises(queue.Empty):
            source.input.get(patience)


def test_a_word_that_came_too_late_wakes_nobody_twice(source: Source) -> None:
    for _ in range(200):
        source.input.post(print)
        assert source.input.get(600) is print
    with pytest.raises(queue.Empty):
        source.input.get(0.01)


def test_while_the_session_works_what_arrives_is_seen(source: Source) -> None:
    # a cancellation behind a long request
    source.send(b"long")
    assert bodies_of(source.input.get(600)) == [b"long"]
    source.send(b"cancel")
    until(lambda: source.arrived == [b"long", b"cancel"])  # nobody has asked for it yet
    assert bodies_of(source.input.get(600)) == [b"cancel"]


def test_the_session_reads_again_as_soon_as_it_waits_again(source: Source) -> None:
    for round_ in range(5):
        source.send(b"%d" % round_)
        assert bodies_of(source.input.get(600)) == [b"%d" % round_]
        time.sleep(3 * module.TAKE_OVER_SECONDS)  # the second thread has taken over, and waits
        for number in range(3):
            threading.Timer(0.01, source.send, (b"next %d" % number,)).start()
            assert bodies_of(source.input.get(600)) == [b"next %d" % number]


def test_the_end_of_input_is_told_also_while_the_session_works(source: Source) -> None:
    source.send(b"a")
    assert bodies_of(source.input.get(600)) == [b"a"]
    source.send(b"b")
    source.end()
    time.sleep(3 * module.TAKE_OVER_SECONDS)
    assert bodies_of(source.input.get(600)) == [b"b"]
    assert source.input.get(600) is None
    assert not source.input.more()
    with pytest.raises(queue.Empty):
        source.input.get(0.01)


def test_what_other_threads_post_is_no_typing(source: Source) -> None:  # R8: the first keystroke waited 20 ms for more
    source.input.post(lambda: None)
    assert not source.input.empty()
    assert not source.input.more()
    source.send(b"typed")
    assert source.input.more()


def test_a_client_that_floods_is_held_back(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_INPUT_BYTES", 100_000)
    sent: list[int] = []

    def flood() -> None:
        for number in range(200):
            source.send(b"%06d" % number + b"x" * 10_000)
            sent.append(number)

    source.send(b"work")
    assert bodies_of(source.input.get(600)) == [b"work"]
    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    time.sleep(0.3)
    assert len(sent) < 60  # 100 KB that wait, and what the pipe holds
    found: list[int] = []
    while len(found) < 200:
        found += [int(body[:6]) for body in bodies_of(source.input.get(600))]
    assert found == list(range(200))
    thread.join()


def test_it_ends_while_the_second_thread_waits_for_the_client() -> None:
    for idle in (False, True):
        source = Source()
        source.send(b"a")
        assert bodies_of(source.input.get(600)) == [b"a"]
        if not idle:
            time.sleep(3 * module.TAKE_OVER_SECONDS)
        source.close()


def test_everything_comes_once_and_in_order_whoever_reads(source: Source, is_long: bool) -> None:
    # the session works now longer and now shorter than it takes the second thread to step in
    turns = random.Random(7)
    count = 60_000 if is_long else 1_500
    posted: list[int] = []

    def send() -> None:
        chance = random.Random(8)
        number = 0
        while number < count:
            batch = min(chance.choice((1, 1, 1, 2, 30)), count - number)
            source.send(*(b"%d" % n + b" " * chance.choice((0, 0, 100_000)) for n in range(number, number + batch)))
            number += batch
            if chance.random() < 0.3:
                time.sleep(chance.choice((0.0001, 0.001, 0.02)))
        source.end()

    def post() -> None:
        for number in range(count // 10):
            source.input.post(lambda number=number: posted.append(number))
            time.sleep(0.0005)

    threads = [threading.Thread(target=work, daemon=True) for work in (send, post)]
    for thread in threads:
        thread.start()
    found: list[int] = []
    ended = False
    while not ended or len(posted) < count // 10:
        try:
            work = source.input.get(turns.choice((0, 0.001, 5)))
        except queue.Empty:
            continue
        if work is None:
            ended = True
        elif callable(work):
            work()
        else:
            found += [int(body) for body in bodies_of(work)]
            if turns.random() < 0.05:
                time.sleep(turns.choice((0.001, 1.2 * module.TAKE_OVER_SECONDS)))
    assert found == list(range(count))
    assert source.arrived == sorted(source.arrived, key=int)
    assert posted == list(range(count // 10))
