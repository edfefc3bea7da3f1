"""A real Neovim with a screen: attached to as a user interface, it says what stands in each cell, and a picture of that can be taken."""

from __future__ import annotations

import html
import itertools
import struct
import subprocess
import threading
import time
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.editors.code_server import chromium

WAIT_SECONDS = 300.0
"""Longer than any wait; the words of what was waited for are printed before the timeout of pytest ends the test."""
REQUEST, RESPONSE, NOTIFICATION = 0, 1, 2
INK, PAPER, RED = 0xE0E2EA, 0x14161B, 0xFFC0B9
"""Colours of Neovim's own dark scheme, as long as it told none."""
FONT = "DejaVu Sans Mono, Liberation Mono, Noto Sans Mono CJK SC, Droid Sans Fallback, WenQuanYi Zen Hei, monospace"
CELL, LINE = 9, 20
"""Pixels of a picture for a cell."""
COLOURS = 48
"""Of a picture."""

# By the first byte of a MessagePack value: how many bytes follow of themselves, and how many bytes of these are the length of what comes then.
_FIXED = {0xCA: 4, 0xCB: 8, **{0xCC + n: 1 << n for n in range(4)}, **{0xD0 + n: 1 << n for n in range(4)}}
_FIXED |= {0xD4 + n: 1 + (1 << n) for n in range(5)}
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_LISTS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}


def end_of_value(data: bytes | bytearray, at: int = 0) -> int | None:
    """Where the MessagePack value that begins at ``at`` ends; None as long as it is not whole. msgspec reads whole values only."""
    left = 1
    while left:
        if at >= len(data):
            return None
        first = data[at]
        at, left = at + 1, left - 1
        if 0x80 <= first <= 0x9F:
            left += (first & 0x0F) * (2 if first <= 0x8F else 1)
        elif 0xA0 <= first <= 0xBF:
            at += first & 0x1F
        elif first in _FIXED:
            at += _FIXED[first]
        else:
            size = next((kind[first] for kind in (_BYTES, _EXTENSIONS, _LISTS, _MAPS) if first in kind), 0)
            if at + size > len(data):
                return None
            length = int.from_bytes(data[at : at + size], "big")
            at += size
            left += length * (first in _LISTS) + 2 * length * (first in _MAPS)
            at += length * (first in _BYTES) + (length + 1) * (first in _EXTENSIONS)
    return at if at <= len(data) else None


class Grid:
    """The cells of a screen, as ``ext_linegrid`` tells them. A character of two cells has an empty one behind it."""

    def __init__(self) -> None:
        self.cells: list[list[tuple[str, int]]] = []
        self.looks: dict[int, dict[str, Any]] = {0: {}}
        self.default = {"foreground": INK, "background": PAPER, "special": RED}
        self.cursor = (0, 0)
        self.mode = "normal"

    def take(self, event: str, *given: Any) -> None:
        """One event of ``redraw``; those that change no cell are passed over."""
        work: Callable[..., None] | None = getattr(self, f"_{event}", None)
        if work is not None:
            work(*given)

    def lines(self) -> list[str]:
        """The text of each line."""
        return ["".join(text for text, _ in row) for row in self.cells]

    def _grid_resize(self, _grid: int, width: int, height: int) -> None:
        self.cells = [[(" ", 0)] * width for _ in range(height)]

    def _grid_clear(self, _grid: int) -> None:
        self.cells = [[(" ", 0)] * len(row) for row in self.cells]

    def _default_colors_set(self, ink: int, paper: int, special: int, *_terminal: int) -> None:
        for name, colour in (("foreground", ink), ("background", paper), ("special", special)):
            if colour >= 0:
                self.default[name] = colour

    def _hl_attr_define(self, number: int, look: dict[str, Any], *_terminal: Any) -> None:
        self.looks[number] = look

    def _grid_line(self, _grid: int, row: int, column: int, cells: list[list[Any]], *_wrap: bool) -> None:
        look = 0
        for cell in cells:
            look = cell[1] if len(cell) > 1 else look
            for _ in range(cell[2] if len(cell) > 2 else 1):
                self.cells[row][column] = (cell[0], look)
                column += 1

    def _grid_scroll(self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, _columns: int) -> None:
        source = [row[left:right] for row in self.cells]
        for row in range(max(top, top - rows), min(bottom, bottom - rows)):
            self.cells[row][left:right] = source[row + rows]

    def _grid_cursor_goto(self, _grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _mode_change(self, mode: str, _number: int) -> None:
        self.mode = mode

    def _style(self, number: int, at_cursor: bool) -> str:
        look = self.looks.get(number, {})
        ink, paper = (look.get(name, self.default[name]) for name in ("foreground", "background"))
        if look.get("reverse") or (at_cursor and self.mode != "insert"):
            ink, paper = paper, ink
        parts = [f"color:#{ink:06x}"]
        if paper != self.default["background"]:
            parts.append(f"background:#{paper:06x}")
        if at_cursor and self.mode == "insert":
            parts.append(f"box-shadow:inset 2px 0 #{self.default['foreground']:06x}")
        parts += [
            css for name, css in (("bold", "font-weight:bold"), ("italic", "font-style:italic")) if look.get(name)
        ]
        lines = {"underline": "solid", "undercurl": "wavy", "underdotted": "dotted", "underdashed": "dashed"}
        kind = next((css for name, css in lines.items() if look.get(name)), None)
        if kind or look.get("strikethrough"):
            where = "underline" if kind else "line-through"
            parts.append(f"text-decoration:{where} {kind or 'solid'} #{look.get('special', ink):06x}")
        return ";".join(parts)

    def page(self) -> str:
        """The screen as an HTML page: a box for each run of cells that look alike, each wide character in one of its own."""
        boxes: list[str] = []
        for number, row in enumerate(self.cells):
            pieces = [
                (column, 2 if column + 1 < len(row) and not row[column + 1][0] else 1, text, look)
                for column, (text, look) in enumerate(row)
                if text
            ]

            def alike(piece: tuple[int, int, str, int], row: int = number) -> tuple[object, ...]:
                column, width, text, look = piece
                here = (row, column) == self.cursor
                # A character that the font may lack has a place of its own, so that none behind it moves.
                return look, here, column if width > 1 or unicodedata.category(text[0]) == "So" else -1

            for (look, here, _alone), run in itertools.groupby(pieces, alike):
                some = list(run)
                text = html.escape("".join(piece[2] for piece in some))
                wide = sum(piece[1] for piece in some)
                place = f"left:{some[0][0] * CELL}px;top:{number * LINE}px;width:{wide * CELL}px"
                style = self._style(look, here)
                if text.strip() or "background" in style or "text-decoration" in style:
                    boxes.append(f'<b style="{place};{style}">{text}</b>')
        look = f"margin:0;background:#{self.default['background']:06x};font:{LINE - 5}px/{LINE}px {FONT}"
        box = f"b{{position:absolute;height:{LINE}px;white-space:pre;font-weight:normal;overflow:hidden}}"
        return f'<!doctype html><meta charset="utf-8"><style>body{{{look}}}{box}</style>{"".join(boxes)}'


def chunks_of(png: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a PNG by their names."""
    chunks: list[tuple[bytes, bytes]] = []
    at = 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += length + 12
    return chunks


def png_of(chunks: list[tuple[bytes, bytes]]) -> bytes:
    packed = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def smaller(png: bytes) -> bytes:
    """A PNG of 8-bit RGB or RGBA with a palette of its most common colours: a third of the bytes, and looks the same."""
    chunks = chunks_of(png)
    width, height, depth, kind = struct.unpack(">IIBB", chunks[0][1][:10])
    size = {2: 3, 6: 4}.get(kind, 0)
    if depth != 8 or not size:
        return png
    rows = _rows(zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT")), width * size, size)
    pixels = [[row[at : at + 3] for at in range(0, len(row), size)] for row in rows]
    times = Counter(itertools.chain.from_iterable(pixels))
    palette = [colour for colour, _ in times.most_common(COLOURS)]

    def nearest(colour: bytes) -> int:
        return min(range(len(palette)), key=lambda n: sum(abs(a - b) for a, b in zip(palette[n], colour, strict=True)))

    numbers = {colour: nearest(colour) for colour in times}
    data = b"".join(b"\0" + bytes(numbers[pixel] for pixel in row) for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return png_of([(b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(data, 9)), (b"IEND", b"")])


def _rows(data: bytes, width: int, size: int) -> Iterator[bytes]:
    """The rows of a PNG's data without the filters that each of them has."""
    above = bytes(width)
    for start in range(0, len(data), width + 1):
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + width])
        for at in range(width) if kind else ():
            left, corner = (row[at - size], above[at - size]) if at >= size else (0, 0)
            row[at] = (row[at] + guess(kind, left, above[at], corner)) & 0xFF
        above = bytes(row)
        yield above


def guess(kind: int, left: int, up: int, corner: int) -> int:
    """What a filter of a PNG expects of a byte, by those around it."""
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


class Screen:
    """A Neovim that thinks a person looks at it."""

    def __init__(
        self, command: list[str], folder: Path, env: dict[str, str], width: int = 100, height: int = 24
    ) -> None:
        self.grid = Grid()
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._answers: dict[int, tuple[Any, Any]] = {}
        self._ended = False
        self._drawn: list[tuple[str, Any]] = []
        self._neovim = subprocess.Popen(
            [*command, "--embed"],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ask("nvim_ui_attach", width, height, {"rgb": True, "ext_linegrid": True})

    def ask(self, method: str, *given: Any) -> Any:
        """Calls a function of Neovim's API; gives its answer."""
        number = next(self._numbers)
        assert self._neovim.stdin is not None
        self._neovim.stdin.write(msgspec.msgpack.encode([REQUEST, number, method, given]))
        self._neovim.stdin.flush()
        with self._changed:
            answered = self._changed.wait_for(lambda: number in self._answers or self._ended, WAIT_SECONDS)
            assert answered and number in self._answers, f"no answer to {method} {given}\n{self.text()}"
            fault, answer = self._answers.pop(number)
        assert fault is None, f"{method} {given}: {fault}"
        return answer

    def lua(self, code: str, *given: Any) -> Any:
        return self.ask("nvim_exec_lua", code, given)

    def keys(self, keys: str) -> None:
        """Types keys, written as Neovim writes them (``<Tab>``)."""
        self.ask("nvim_input", keys)

    def text(self) -> str:
        """What stands on the screen, line by line."""
        return "\n".join(line.rstrip() for line in self.grid.lines())

    def wait(self, *parts: str, without: str = "") -> str:
        """Waits until all parts stand on the screen, and ``without`` does not; gives its text."""

        def stands() -> bool:
            text = self.text()
            return all(part in text for part in parts) and not (without and without in text)

        with self._changed:
            assert self._changed.wait_for(lambda: stands() or self._ended, WAIT_SECONDS) and stands(), (
                f"waited in vain for {parts}, without {without!r}:\n{self.text()}"
            )
            return self.text()

    def until(self, code: str, *given: Any) -> Any:
        """Asks a piece of Lua until it gives something; gives that."""
        end = time.monotonic() + WAIT_SECONDS
        while not (found := self.lua(code, *given)):
            assert time.monotonic() < end, f"waited in vain for {code}:\n{self.text()}"
            time.sleep(0.02)
        return found

    def wait_for_look(self, text: str, group: str) -> None:
        """Waits until the first cell of a text has all that a highlight group says of colours and letters."""
        names = {"fg": "foreground", "bg": "background", "sp": "special"}
        found = self.lua("return vim.api.nvim_get_hl(0, { name = ..., link = false })", group)
        wanted = {
            names.get(name, name): value
            for name, value in found.items()
            if name not in ("cterm", "ctermfg", "ctermbg", "blend")
        }
        assert wanted, f"{group} says nothing"
        with self._changed:
            assert self._changed.wait_for(lambda: wanted.items() <= self._look_of(text).items(), WAIT_SECONDS), (
                f"{text!r} does not look like {group}, {wanted}, but {self._look_of(text)}:\n{self.text()}"
            )

    def _look_of(self, text: str) -> dict[str, Any]:
        for row in self.grid.cells:
            shown = [cell for cell in row if cell[0]]
            column = "".join(cell[0][0] for cell in shown).find(text)
            if column >= 0:
                return self.grid.looks[shown[column][1]]
        return {}

    def photograph(self, file: Path) -> None:
        """A picture of the screen, by the Chromium that draws those of VS Code."""
        browser = chromium()
        assert browser is not None, "no chromium draws the pictures: install it, or leave out TAMIS_KEEP_PICTURES"
        with self._changed:
            page = self.grid.page()
            width, height = len(self.grid.cells[0]) * CELL, len(self.grid.cells) * LINE
        source = file.with_suffix(".html")
        source.write_text(page, "utf-8")
        switches = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-lcd-text"]
        subprocess.run(
            [browser, *switches, f"--screenshot={file}", f"--window-size={width},{height}", source.as_uri()],
            capture_output=True,
            check=True,
        )
        source.unlink()
        file.write_bytes(smaller(file.read_bytes()))

    def close(self) -> None:
        if not self._ended:
            assert self._neovim.stdin is not None
            self._neovim.stdin.write(msgspec.msgpack.encode([NOTIFICATION, "nvim_command", ["qall!"]]))
            self._neovim.stdin.flush()
        try:
            self._neovim.wait(10)
        except subprocess.TimeoutExpired:
            self._neovim.kill()
            self._neovim.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._neovim.stdout is not None
        data = bytearray()
        while piece := self._neovim.stdout.read1(1 << 16):
            data += piece
            at = 0
            while (end := end_of_value(data, at)) is not None:
                self._take(msgspec.msgpack.decode(data[at:end]))
                at = end
            del data[:at]
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, message: list[Any]) -> None:
        with self._changed:
            if message[0] == RESPONSE:
                self._answers[message[1]] = (message[2], message[3])
            elif message[0] == NOTIFICATION and message[1] == "redraw":
                for event, *calls in message[2]:
                    self._drawn += [(event, given) for given in calls]
                    if event == "flush":  # what came before it is half a picture
                        for name, given in self._drawn:
                            self.grid.take(name, *given)
                        self._drawn.clear()
            self._changed.notify_all()
