"""What a run leaves in its writable folders is said: files that other programs obey, links that lead out, set modes and names
with escapes (trust 2, 8b)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.sandbox.model import Mount, RunOutcome
from tamis.sandbox.paths.lending import is_obeyed, sweep
from tamis.sandbox.paths.walk import open_absolute
from tests.sandbox import support

OBEYED = "a file that other programs obey"


def left(tmp_path: Path, source: str) -> tuple[RunOutcome, Path]:
    out = Path(os.path.realpath(tmp_path)) / "out"
    out.mkdir(exist_ok=True)
    folder = support.tool_folder(tmp_path, f"import os; os.chdir('/out')\n{source}")
    return support.run(support.request(folder, write=(Mount(str(out), "/out"),))), out


PLANTED = (
    *("tamis.toml", "x.tool.json", "a/b/y.workflow.json", "agent_profile.json", ".envrc", ".git/hooks/post-checkout"),
    *(
        ".git/config",
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        ".pre-commit-config.yaml",
        "sitecustomize.py",
        "z.pth",
    ),
    *(".npmrc", ".mise.toml", ".python-version", "Makefile", "hooks/pre-commit"),
)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_file_is_reported(tmp_path: Path, name: str) -> None:
    source = f"p={name!r}; os.makedirs(os.path.dirname(p) or '.', exist_ok=True); open(p, 'w').write('x')"
    outcome, out = left(tmp_path, source)
    assert outcome.kind == "ok", outcome
    assert any(line.startswith(f"{out}/{name}: ") and OBEYED in line for line in outcome.violations), outcome.violations


def test_a_changed_file_is_reported_and_an_untouched_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("tamis.toml", "Makefile", "data.json"):
        (tmp_path / "out" / name).write_text("before")
    # the time of modification can be set back, the time of change cannot
    outcome, out = left(
        tmp_path,
        "i=os.stat('tamis.toml'); f=open('tamis.toml','r+'); f.write('after!'); f.close(); os.utime('tamis.toml', ns=(i.st_atime_ns, i.st_mtime_ns))"
        if not support.IS_ROOT
        else "os.remove('tamis.toml'); open('tamis.toml','w').write('after!'); os.utime('tamis.toml', ns=(1, 1))",
    )
    assert outcome.kind == "ok", outcome
    assert [line.partition(": ")[0] for line in outcome.violations] == [f"{out}/tamis.toml"]


def test_ordinary_output_is_not_reported(tmp_path: Path) -> None:
    outcome, _ = left(
        tmp_path,
        "os.makedirs('a/.git/hooks'); open('a/report.json','w').write('{}'); open('a/.git/hooks/x.sample','w').write(''); os.symlink('report.json','a/latest')",
    )
    assert (outcome.kind, outcome.violations) == ("ok", ())


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "a/../../outside"])
def test_a_link_that_leads_out_is_reported(tmp_path: Path, target: str) -> None:
    outcome, out = left(tmp_path, f"os.symlink({target!r}, 'report')")
    assert outcome.violations == (f"{out}/report: a link that leads out of the folder, to {target}",)


def test_a_name_with_escapes_is_reported_escaped(tmp_path: Path) -> None:
    outcome, _ = left(tmp_path, "open('a\\x1b]0;title\\x07b', 'w').close(); os.symlink('/\\x1b[2J', 'c')")
    assert len(outcome.violations) == 2
    assert "\x1b" not in "".join(outcome.violations)
    assert any("terminal" in line for line in outcome.violations)


def test_set_modes_of_folders_do_not_stay(tmp_path: Path) -> None:
    # the filter refuses to set them; a folder that has them, by whatever way, is put in order
    outcome, out = left(tmp_path, "os.mkdir('d')")
    assert outcome.kind == "ok"
    (out / "d").chmod(0o4755)
    with open_absolute(str(out)) as opened:
        assert any("set-uid" in line for line in sweep(opened))
    assert (out / "d").stat().st_mode & 0o7777 == 0o755


def test_the_report_is_bounded(tmp_path: Path) -> None:
    outcome, _ = left(tmp_path, "for i in range(400): os.mkdir(str(i)); open(f'{i}/tamis.toml','w').close()")
    assert len(outcome.violations) <= 100


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".git",
            "sub/.git",
            "report/HEAD",
            ".git/commondir",
            ".git/modules/a/config",
            ".git/modules/a/hooks/post-merge",
        ),
        *(".git/worktrees/b/config.worktree", "eslint.config.js"),
    ],
)
def test_what_git_and_editors_obey_is_known(path: str) -> None:
    assert is_obeyed(path)


def test_a_planted_repository_without_a_worktree_is_reported(tmp_path: Path) -> None:
    outcome, out = left(
        tmp_path,
        "for name in ('objects', 'refs'): os.makedirs('r/' + name)\n"
        "open('r/HEAD','w').write('ref: refs/heads/main'); open('r/config','w').write('[core]\\n\\tfsmonitor = touch /tmp/x')",
    )
    assert [line.partition(": ")[0] for line in outcome.violations] == [f"{out}/r/HEAD"]


@pytest.mark.parametrize(
    "path",
    [
        "report.json",
        "src/main.py",
        "a/b.toml",
        "hooks/data/x",
        "docs/tamis.toml.md",
        ".git/HEAD",
        ".git/worktrees/b/commondir",
    ],
)
def test_a_name_that_only_looks_alike_is_not_meant(path: str) -> None:
    assert not is_obeyed(path)


def test_a_crowd_of_harmless_things_does_not_hide_what_others_obey(tmp_path: Path) -> None:
    """Trust 6: what a run left is told in bounded number; what programs obey comes first, and the rest is counted."""
    for number in range(500):
        (tmp_path / f"a{number:03}").symlink_to("/etc/passwd")
    (tmp_path / "zz" / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "zz" / ".git" / "hooks" / "post-commit").write_text("x")
    with open_absolute(str(tmp_path)) as opened:
        said = sweep(opened)
    assert "post-commit" in said[0] and "other programs obey" in said[0]
    assert len(said) == 100 and said[-1].endswith(": 402 more such things, which are not named")
