"""What a run inherits: no variable, descriptor, session or name of the host."""

from __future__ import annotations

from typing import Any

from tests.sandbox.cases.base import Place, attack, refusal

_OURS = (
    "{'PATH','HOME','TMPDIR','LANG','MALLOC_ARENA_MAX','PYTHONUNBUFFERED','PYTHONDONTWRITEBYTECODE','NO_COLOR','PWD',"
    "'OLDPWD','LC_CTYPE','SHLVL','_','SSL_CERT_FILE'}"
)


def _env(**names: str) -> Any:
    def arrange(place: Place) -> dict[str, Any]:
        return {"env": names}

    return arrange


ENVIRONMENT = (
    attack("e01-no-host-variables", "held() if 'TAMIS_TEST_SECRET' not in os.environ else broken('leak')"),
    attack("e02-nothing-else", f"extra=set(os.environ)-{_OURS}; held() if not extra else broken(extra)"),
    attack(
        "e03-parent-environ",
        "for p in ('1', 'self', str(os.getppid())):\n  try: d=open(f'/proc/{p}/environ','rb').read()\n  except OSError: continue\n  if b'TAMIS_TEST_SECRET' in d or b'hidden' in d: broken(p)\nheld()",
    ),
    attack("e04-cwd", "held() if os.getcwd() == '/tool' else broken(os.getcwd())"),
    attack("e05-own-session", "held() if os.getsid(0) != 0 else broken('session')", layer="new-session"),
    attack(
        "e06-umask-and-signals",
        "import signal; s=open('/proc/self/status').read(); ign=int([l for l in s.splitlines() if l.startswith('SigIgn')][0].split()[1],16); blk=int([l for l in s.splitlines() if l.startswith('SigBlk')][0].split()[1],16); held() if blk == 0 and not ign & ~(1 << 12 | 1 << 24) else broken((ign, blk))",
    ),
    attack(
        "e07-command-line-of-pid-1",
        "d=open('/proc/1/cmdline','rb').read(); held() if b'hidden' not in d and b'bind' not in d else broken(d)",
    ),
    attack(
        "e08-own-command-line",
        "d=open('/proc/self/cmdline','rb').read().split(b'\\0'); held() if d[-2].startswith(b'/tool/') else broken(d)",
        args=(),
    ),
    attack(
        "e09-no-supplementary-groups",
        "held() if set(os.getgroups()) <= {1000, 65534} and os.getgid() == 1000 else broken(os.getgroups())",
    ),
    attack(
        "e10-preload-is-the-loaders",
        "held() if not os.path.exists('/etc/ld.so.preload') and 'LD_PRELOAD' not in os.environ else broken('preload')",
    ),
    attack(
        "e11-path-has-no-host-folder",
        "held() if all(p in ('/usr/bin','/bin','/env/bin','/usr/sbin','/usr/local/bin') for p in os.environ['PATH'].split(':')) else broken(os.environ['PATH'])",
    ),
    attack(
        "e12-empty-user-site",
        "bad=[p for p in sys.path if p and not p.startswith(('/tool','/usr','/env','/opt'))]; held() if not bad else broken(bad)",
    ),
    *(
        refusal(f"e13-{name or 'empty'}-is-not-settable".replace("\0", "nul").replace("=", "-is-"), _env(**{name: "x"}))
        for name in (
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "LD_AUDIT",
            "PATH",
            "HOME",
            "NODE_OPTIONS",
            "BASH_ENV",
            "PYTHONSTARTUP",
            "PYTHONHOME",
            "GLIBC_TUNABLES",
            "A=B",
            "",
            "1A",
            "A\0",
            "A B",
        )
    ),
    refusal("e14-value-with-nul", _env(NAME="a\0b")),
    refusal("e15-value-that-is-no-text", _env(NAME="\udc00\ud800")),
)
