"""Where a script may lie: every spelling that leads elsewhere is refused before anything starts (S1)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from tests.sandbox.cases.base import Place, is_untouched, refusal


def _script(path: str | Callable[[Place], str]) -> Callable[[Place], dict[str, Any]]:
    def arrange(place: Place) -> dict[str, Any]:
        return {"script": path if isinstance(path, str) else path(place)}

    return arrange


def _beside(place: Place) -> str:
    (place.root / "outside.py").write_text("print('BROKEN')")
    return "../outside.py"


def _absolute(place: Place) -> str:
    return str(place.folder / "tool.py")


def _link(target: Callable[[Place], str]) -> Callable[[Place], str]:
    def make(place: Place) -> str:
        (place.root / "outside.py").write_text("print('BROKEN')")
        (place.folder / "link.py").symlink_to(target(place))
        return "link.py"

    return make


def _folder_link(place: Place) -> str:
    (place.root / "out").mkdir()
    (place.root / "out" / "x.py").write_text("print('BROKEN')")
    (place.folder / "sub").symlink_to(place.root / "out")
    return "sub/x.py"


def _deep_link(place: Place) -> str:
    (place.folder / "a").mkdir()
    (place.folder / "a" / "x.py").write_text("print('BROKEN')")
    (place.folder / "b").mkdir()
    (place.folder / "b" / "c").symlink_to("../a")
    return "b/c/x.py"


def _fifo(place: Place) -> str:
    os.mkfifo(place.folder / "f.py")
    return "f.py"


def _socket(place: Place) -> str:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(place.folder, os.O_PATH)
        try:
            made.bind(f"/proc/self/fd/{here}/s.py")
        finally:
            os.close(here)
    return "s.py"


def _folder(place: Place) -> str:
    (place.folder / "d.py").mkdir()
    return "d.py"


def _below_file(place: Place) -> str:
    (place.folder / "x.py").write_text("print('BROKEN')")
    return "x.py/y.py"


def _at(path: Callable[[Place], str]) -> Callable[[Place], dict[str, Any]]:
    """Another tool folder than the one that was made."""

    def arrange(place: Place) -> dict[str, Any]:
        place.victim()
        return {"folder": path(place)}

    return arrange


def _linked_folder(place: Place) -> str:
    (place.root / "t").symlink_to(place.folder)
    return str(place.root / "t")


def _folder_below_link(place: Place) -> str:
    (place.root / "up").symlink_to(place.root)
    return f"{place.root}/up/{place.folder.name}"


def _gone(place: Place) -> str:
    place.folder.rename(place.root / "moved")
    return str(place.folder)


PATHS = (
    refusal("h01-beside", _script(_beside)),
    refusal("h02-dots-in-the-middle", _script("a/../../outside.py")),
    refusal("h03-dots-that-stay-inside", _script("a/../tool.py")),
    refusal("h04-absolute", _script(_absolute)),
    refusal("h05-etc", _script("/etc/passwd")),
    refusal("h06-escaped-dots", _script("%2e%2e/outside.py")),
    refusal("h07-backslashes", _script("..\\outside.py")),
    refusal("h08-nul", _script("tool.py\0.txt")),
    refusal("h09-dot", _script(".")),
    refusal("h10-only-slashes", _script("///")),
    refusal("h11-double-slash", _script("a//tool.py")),
    refusal("h12-trailing-slash", _script("tool.py/")),
    refusal("h13-long-name", _script("x" * 300 + ".py")),
    refusal("h14-long-path", _script("/".join(["d"] * 3000) + "/x.py")),
    refusal("h15-newline-that-is-not-there", _script("tool.py\n")),
    refusal("h16-no-text", _script("\ud800.py")),
    refusal("h17-absolute-link", _script(_link(lambda place: str(place.root / "outside.py")))),
    refusal("h18-relative-link", _script(_link(lambda place: "../outside.py"))),
    refusal("h19-link-inside", _script(_link(lambda place: "tool.py"))),
    refusal("h20-link-to-nothing", _script(_link(lambda place: "/nowhere/yet.py"))),
    refusal("h21-link-to-itself", _script(_link(lambda place: "link.py"))),
    refusal("h22-magic-link", _script(_link(lambda place: "/proc/self/fd/0"))),
    refusal("h23-link-to-a-device", _script(_link(lambda place: "/dev/zero"))),
    refusal("h24-folder-is-a-link", _script(_folder_link)),
    refusal("h25-folder-inside-is-a-link", _script(_deep_link)),
    refusal("h26-fifo", _script(_fifo)),
    refusal("h27-socket", _script(_socket)),
    refusal("h28-folder", _script(_folder)),
    refusal("h29-below-a-file", _script(_below_file)),
    refusal("h30-home", _script("~/x.py")),
    refusal("h31-variable", _script("$HOME/x.py")),
    refusal("h32-url", _script("file:///etc/passwd")),
    refusal("h33-other-case", _script("TOOL.PY")),
    refusal("h34-tool-folder-is-a-link", _at(_linked_folder)),
    refusal("h35-tool-folder-below-a-link", _at(_folder_below_link)),
    refusal("h36-tool-folder-is-gone", _at(_gone)),
    refusal("h37-tool-folder-is-a-file", _at(lambda place: str(place.root / "victim" / "secret")), after=is_untouched),
    refusal("h38-tool-folder-is-relative", _at(lambda place: "tool")),
    refusal("h39-tool-folder-has-dots", _at(lambda place: f"{place.root}/x/../{place.folder.name}")),
    refusal("h40-tool-folder-by-proc", _at(lambda place: f"/proc/self/root{place.folder}")),
    refusal("h41-tool-folder-is-empty", _at(lambda place: "")),
    refusal("h42-tool-folder-with-nul", _at(lambda place: f"{place.folder}\0")),
)
