"""Granted folders: what a script leaves in them, and where links in them lead (S1, S2, S7)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamis.sandbox.model import Mount, RunOutcome
from tests.sandbox.cases.base import Case, Place, attack, is_untouched, over, refusal, works


def _write(place: Place) -> dict[str, Any]:
    data = place.data()
    place.victim()
    return {"args": (str(data), str(place.root / "victim")), "write": (Mount(str(data)),)}


def _read(place: Place) -> dict[str, Any]:
    data = place.data()
    place.victim()
    return {"args": (str(data), str(place.root / "victim")), "read": (Mount(str(data)),)}


def _both_ways(prepare: Callable[[Place, Path], None], which: str = "read") -> Callable[[Place], dict[str, Any]]:
    """A granted folder that something was put in before."""

    def arrange(place: Place) -> dict[str, Any]:
        wanted = (_read if which == "read" else _write)(place)
        prepare(place, place.root / "data")
        return wanted

    return arrange


def _entries(folder: Path) -> list[Path]:
    return [Path(top) / name for top, folders, files in os.walk(folder) for name in (*folders, *files)]


def only_plain(place: Place, outcome: RunOutcome) -> str:
    """Only plain files, folders and links are left in the granted folder, none with a set-id bit; the victim is whole."""
    for path in _entries(place.root / "data"):
        mode = path.lstat().st_mode
        plain = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        if not plain or (stat.S_ISREG(mode) and mode & 0o6000):
            return f"{path} was left with mode {mode:o}"
    return is_untouched(place, outcome)


def said(*words: str) -> Callable[[Place, RunOutcome], str]:
    """As `only_plain`, and each word is in one of the violations."""

    def look(place: Place, outcome: RunOutcome) -> str:
        """As `only_plain`, and said."""
        return only_said(place, outcome) or only_plain(place, outcome)

    only_said = says(*words)
    return look


def says(*words: str) -> Callable[[Place, RunOutcome], str]:
    """Each word is in one of the violations, which are text without control characters."""

    def look(place: Place, outcome: RunOutcome) -> str:
        missing = [word for word in words if not any(word in line for line in outcome.violations)]
        for line in outcome.violations:
            line.encode("utf-8")
            if any(ord(char) < 32 for char in line):
                return f"control characters in {line!r}"
        return f"not said: {missing} in {outcome.violations[:5]}" if missing else is_untouched(place, outcome)

    return look


def owned_by_us(place: Place, outcome: RunOutcome) -> str:
    """All that is left belongs to the folder's owner again."""
    for path in (place.root / "data", *_entries(place.root / "data")):
        if path.lstat().st_uid != os.geteuid():
            return f"{path} belongs to {path.lstat().st_uid}"
    return only_plain(place, outcome)


def still_ours(place: Place, outcome: RunOutcome) -> str:
    """A file that has another name outside the grant kept its owner."""
    owner = (place.root / "victim" / "secret").stat().st_uid
    return is_untouched(place, outcome) or ("" if owner == os.geteuid() else f"it belongs to {owner}")


def not_made(top: str, name: str) -> Callable[[Place, RunOutcome], str]:
    """Nothing of this name was made in the case's root or tool folder."""

    def look(place: Place, outcome: RunOutcome) -> str:
        made = (place.root if top == "root" else place.folder) / name
        return f"{made} was made" if made.exists() else ""

    return look


def _links_out(place: Place, data: Path) -> None:
    (data / "abs").symlink_to(place.root / "victim")
    (data / "rel").symlink_to("../victim")
    (data / "old").symlink_to(f"/oldroot{place.root}/victim")
    (data / "proc").symlink_to("/proc/1/root")
    (data / "leaf").symlink_to(place.root / "victim" / "not-yet")


def _host_device(place: Place, data: Path) -> None:
    os.mkfifo(data / "fifo")


def _host_suid(place: Place, data: Path) -> None:
    (data / "suid").write_text("#!/bin/sh\nid\n")
    (data / "suid").chmod(0o4755)


def _hard_link(place: Place, data: Path) -> None:
    (data / "linked").hardlink_to(place.root / "victim" / "secret")


def _grant(which: str, path: Callable[[Place], str], dest: str = "") -> Callable[[Place], dict[str, Any]]:
    def arrange(place: Place) -> dict[str, Any]:
        place.victim()
        return {which: (Mount(path(place), dest),)}

    return arrange


def _linked(place: Place) -> str:
    (place.root / "link").symlink_to(place.root / "victim")
    return str(place.root / "link")


def _through_link(place: Place) -> str:
    (place.root / "up").symlink_to(place.root)
    return str(place.root / "up" / "victim")


def _dangling(place: Place) -> str:
    (place.root / "leaf").symlink_to(place.root / "not-yet")
    return str(place.root / "leaf")


def _loop(place: Place) -> str:
    (place.root / "loop").symlink_to("loop")
    return str(place.root / "loop")


def _fifo(place: Place) -> str:
    os.mkfifo(place.root / "fifo")
    return str(place.root / "fifo")


def _file(place: Place) -> str:
    return str(place.root / "victim" / "secret")


def _cve(target: str) -> Callable[[Place], dict[str, Any]]:
    """A link in the tool's folder where a grant is to be shown: bubblewrap before 0.12 made folders behind it."""

    def arrange(place: Place) -> dict[str, Any]:
        place.victim()
        data = place.data()
        (place.folder / ".cache").symlink_to(f"/oldroot{place.root}/victim")
        return {"read": (Mount(str(data), target),)}

    return arrange


def _cve_own(place: Place) -> dict[str, Any]:
    place.victim()
    (place.folder / ".cache").symlink_to(f"/oldroot{place.root}/victim")
    return {"write": (Mount(f"{place.folder}/.cache"),)}


def _cve_relative(place: Place) -> dict[str, Any]:
    place.victim()
    (place.folder / ".cache").symlink_to("../" * 30 + f"oldroot{place.root}/victim")
    return {"write": (Mount(f"{place.folder}/.cache/new"),)}


def _script_in_writable(place: Place) -> dict[str, Any]:
    (place.folder / "bin").mkdir()
    (place.folder / "bin" / "s.py").write_text("open(__file__,'a').write('#'); print('BROKEN')")
    return {"script": "bin/s.py", "write": (Mount(f"{place.folder}/bin"),)}


def _writable_above(place: Place) -> dict[str, Any]:
    return {"write": (Mount(str(place.root)),)}


def _writable_above_elsewhere(place: Place) -> dict[str, Any]:
    return {"write": (Mount(str(place.root), "/data"),)}


def _nested(place: Place) -> dict[str, Any]:
    data = place.data()
    (data / "sub").mkdir()
    return {"write": (Mount(str(data)),), "read": (Mount(str(data / "sub")),)}


def _nested_elsewhere(place: Place) -> dict[str, Any]:
    data = place.data()
    return {"write": (Mount(str(data), "/w"),), "read": (Mount(str(place.victim()), "/w/in"),)}


def _same_place(place: Place) -> dict[str, Any]:
    data = place.data()
    place.victim()
    return {
        "read": (Mount(str(data), "/x"), Mount(str(place.root / "victim"), "/x")),
    }


GRANTED = (
    attack(
        "g01-read-grant-is-read-only",
        "d=sys.argv[1]; open(d+'/in.txt').read() == 'granted' or broken('unreadable'); tries(lambda: open(d+'/in.txt','a'), lambda: open(d+'/new','w'), lambda: os.chmod(d, 0o777), lambda: os.unlink(d+'/in.txt'), lambda: os.utime(d+'/in.txt'))",
        arrange=_read,
    ),
    attack(
        "g02-beside-a-grant-is-nothing",
        "tries(lambda: os.listdir(sys.argv[2]), lambda: open(sys.argv[1]+'/../victim/secret'))",
        arrange=_read,
        after=is_untouched,
    ),
    works(
        "g03-fifo-left",
        "import os,sys; os.mkfifo(sys.argv[1]+'/fifo'); print('x')",
        "x\n",
        arrange=_write,
        after=said("fifo"),
    ),
    attack(
        "g04-socket-left",
        "import socket; os.chdir(sys.argv[1])\ndef go():\n  s=socket.socket(1); s.bind('s')\ncannot(go)",
        arrange=_write,
        after=only_plain,
    ),
    attack(
        "g05-device-left",
        "tries(lambda: os.mknod(sys.argv[1]+'/c', 0o20666, os.makedev(1,3)), lambda: os.mknod(sys.argv[1]+'/b', 0o60666, os.makedev(8,0)))",
        arrange=_write,
        after=only_plain,
    ),
    attack(
        "g06-setuid-left",
        "p=sys.argv[1]+'/x'; open(p,'w').close(); tries(lambda: os.chmod(p,0o4755), lambda: os.mknod(p+'2',0o106755), lambda: os.close(os.open(p+'3',os.O_CREAT|os.O_WRONLY,0o2755)), lambda: os.fchmodat(-100,p,0o4755) if hasattr(os,'fchmodat') else os.chmod(p,0o6755))",
        arrange=_write,
        after=only_plain,
    ),
    works(
        "g07-setuid-that-was-there-goes", "print('x')", "x\n", arrange=_both_ways(_host_suid, "write"), after=only_plain
    ),
    works(
        "g08-links-left-are-not-followed",
        "import os,sys\nd,v=sys.argv[1:]\nos.symlink(v, d+'/abs'); os.symlink('../victim', d+'/rel'); os.symlink('/oldroot'+v, d+'/old'); os.symlink('/etc/passwd', d+'/p'); os.symlink(v+'/not-yet', d+'/leaf'); print('x')",
        "x\n",
        arrange=_write,
        after=owned_by_us,
    ),
    works(
        "g09-odd-names",
        "import os,sys\nd=os.fsencode(sys.argv[1])\nfor n in (b'\\xff\\xfe', b'a\\nb', b'\\x1b[31m', b'-rf', b' '): os.mkfifo(d+b'/'+n)\nprint('x')",
        "x\n",
        arrange=_write,
        after=said("special file"),
    ),
    works(
        "g10-hidden-below-a-closed-folder",
        "import os,sys\nd=sys.argv[1]+'/closed'; os.mkdir(d); os.mkfifo(d+'/fifo'); os.chmod(d, 0); print('x')",
        "x\n",
        arrange=_write,
        after=said("fifo"),
    ),
    works(
        "g11-closed-at-each-level",
        "import os,sys\nd=sys.argv[1]\nfor i in range(10): d+='/d'; os.mkdir(d)\nos.mkfifo(d+'/fifo')\nwhile d!=sys.argv[1]: os.chmod(d, 0o100 if len(d)%4 else 0); d=os.path.dirname(d)\nprint('x')",
        "x\n",
        arrange=_write,
        after=None,
    ),
    works(
        "g12-deep",
        "import os,sys\nos.chdir(sys.argv[1])\nfor i in range(300): os.mkdir('d'); os.chdir('d')\nos.mkfifo('fifo'); print('x')",
        "x\n",
        arrange=_write,
        after=says("deep"),
    ),
    works(
        "g13-many",
        "import os,sys\nos.chdir(sys.argv[1])\nfor i in range(21000): open(str(i),'w').close()\nprint('x')",
        "x\n",
        arrange=_write,
        after=said("more than"),
    ),
    works(
        "g14-owner-again",
        "import os,sys\nos.chdir(sys.argv[1]); os.makedirs('a/b'); open('a/b/c','w').close(); open('in.txt','a').write('!'); os.symlink('x','a/l'); print('x')",
        "x\n",
        arrange=_write,
        after=owned_by_us,
    ),
    Case(
        "g15-swept-after-failure",
        "import os,sys; os.mkfifo(sys.argv[1]+'/fifo'); sys.exit(1)",
        kind="error",
        error="ScriptError",
        arrange=_write,
        after=said("fifo"),
    ),
    Case(
        "g16-swept-after-timeout",
        "import os,sys,time; os.mkfifo(sys.argv[1]+'/fifo'); time.sleep(3600)",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 600},
        arrange=_write,
        after=said("fifo"),
    ),
    over(
        "g17-swept-after-limit",
        "stdout",
        "os.mkfifo(sys.argv[1]+'/fifo')\nwhile True: os.write(1, b'x'*65536)",
        arrange=_write,
        after=said("fifo"),
    ),
    attack(
        "g18-links-out-of-a-read-grant",
        "d=sys.argv[1]\nfor n in ('abs','rel','old','leaf'):\n  try: x=os.listdir(d+'/'+n)\n  except OSError: continue\n  broken(n)\ntry: x=os.listdir(d+'/proc')\nexcept OSError: x=[]\nheld() if 'root' not in x and 'home' not in x else broken(x)",
        arrange=_both_ways(_links_out),
        after=None,
    ),
    attack(
        "g19-links-out-of-a-write-grant",
        "d=sys.argv[1]\nfor n in ('abs','rel','old'):\n  try: open(d+'/'+n+'/made','w')\n  except OSError: continue\n  broken(n)\ncannot(lambda: open(d+'/leaf','w'))",
        arrange=_both_ways(_links_out, "write"),
        after=is_untouched,
    ),
    works(
        "g20-fifo-that-was-there-does-not-block",
        "import os,sys; print(os.path.exists(sys.argv[1]+'/in.txt'))",
        "True\n",
        arrange=_both_ways(_host_device, "write"),
        after=said("fifo"),
    ),
    attack(
        "g21-grants-mount-point-stays",
        "d=sys.argv[1]; tries(lambda: os.rmdir(d), lambda: os.rename(d, d+'2'))",
        arrange=_write,
        after=only_plain,
    ),
    attack(
        "g22-hard-link-from-tool-to-grant",
        "d=sys.argv[1]; tries(lambda: os.link(__file__, d+'/s'), lambda: os.link('/usr/bin/env', d+'/e'), lambda: os.rename('/tool', d+'/t'), lambda: os.link('/proc/self/exe', d+'/p'))",
        arrange=_write,
        after=only_plain,
    ),
    works(
        "g23-file-shared-with-the-host-keeps-its-owner",
        "import sys; print('x')",
        "x\n",
        arrange=_both_ways(_hard_link, "write"),
        after=still_ours,
    ),
    refusal("g24-link", _grant("read", _linked), after=is_untouched),
    refusal("g25-link-to-write", _grant("write", _linked), after=is_untouched),
    refusal("g26-link-on-the-way", _grant("read", _through_link), after=is_untouched),
    refusal("g27-link-on-the-way-to-write", _grant("write", _through_link), after=is_untouched),
    refusal(
        "g28-link-to-what-is-not-there-yet",
        _grant("write", _dangling),
        after=not_made("root", "not-yet"),
    ),
    refusal("g29-link-to-itself", _grant("read", _loop)),
    refusal("g30-fifo", _grant("read", _fifo)),
    refusal("g31-file-to-write", _grant("write", _file), after=is_untouched),
    refusal(
        "g32-magic-root",
        _grant("read", lambda place: f"/proc/{os.getpid()}/root{place.root}/victim"),
        after=is_untouched,
    ),
    refusal("g33-magic-self", _grant("write", lambda place: "/proc/self/cwd"), after=is_untouched),
    refusal("g34-descriptor", _grant("read", lambda place: "/dev/fd/0")),
    refusal("g35-dots", _grant("write", lambda place: f"{place.root}/data/../victim"), after=is_untouched),
    refusal(
        "g36-missing",
        _grant("write", lambda place: f"{place.root}/none"),
        after=not_made("root", "none"),
    ),
    refusal("g37-relative", _grant("read", lambda place: "victim")),
    refusal("g38-nul", _grant("read", lambda place: f"{place.root}/victim\0x")),
    refusal("g39-no-text", _grant("read", lambda place: f"{place.root}/\ud800")),
    refusal("g40-very-long", _grant("read", lambda place: "/" + "x" * 5000)),
    refusal("g41-mount-point-through-a-link", _cve("/tool/.cache"), after=is_untouched),
    refusal("g42-mount-point-below-a-link", _cve("/tool/.cache/a/b"), after=is_untouched),
    refusal("g43-write-through-a-link", _cve_own, after=is_untouched),
    refusal("g44-write-below-a-relative-link", _cve_relative, after=is_untouched),
    refusal(
        "g45-mount-point-not-there",
        _cve("/tool/new"),
        after=not_made("folder", "new"),
    ),
    *(
        refusal(f"g46-over-{dest.replace('/', '-')}", _grant("read", lambda place: f"{place.root}/victim", dest))
        for dest in (
            "/",
            "/usr/x",
            "/etc/x",
            "/proc/x",
            "/dev/x",
            "/tool",
            "/run",
            "/bin",
            "/sys/x",
            "/stage/x",
            "/lib64/x",
            "/tmp",
            "/a/../etc",
            "//etc",
            "/x/",
            "x",
        )
    ),
    # only ever asked for reading: a sandbox that let one through would hand it to the run's uid as root
    *(
        refusal(f"g55-never-{path.replace('/', '-')}", _grant("read", lambda place, path=path: path, "/x"))
        for path in ("//proc", "//etc", "/etc/", "/home/", "/root//", "/./root", "//", "/proc/", "/etc/../etc")
    ),
    refusal("g47-own-folder-to-write", lambda place: {"write": (Mount(str(place.folder)),)}),
    refusal("g48-own-folder-to-write-elsewhere", lambda place: {"write": (Mount(str(place.folder), "/elsewhere"),)}),
    refusal("g49-folder-above-the-tool-to-write", _writable_above),
    refusal("g50-folder-above-the-tool-shown-elsewhere", _writable_above_elsewhere),
    refusal("g51-script-in-a-writable-folder", _script_in_writable),
    refusal("g52-read-below-write", _nested),
    refusal("g53-read-below-write-elsewhere", _nested_elsewhere),
    refusal("g54-two-things-at-one-place", _same_place),
)
