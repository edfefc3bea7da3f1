"""What is declared beside a script and where packages come from: strict reading, refusals that name the place, settings of pip and uv."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.environments import requirements
from tamis.environments.configured_indexes import PUBLIC_INDEX, pip_settings
from tamis.environments.declared import declares
from tamis.environments.indexes import allow_list, parse_index, require_configured, require_named, shown_url
from tamis.environments.model import DependencyFault
from tamis.environments.prepare import detect
from tamis.environments.requirements import gather, logical_lines, parse_files, parse_requirement

A, B = "A1" * 32, "b2" * 32


def refused(call: object, *words: str) -> DependencyFault:
    with pytest.raises(DependencyFault) as caught:
        call()  # type: ignore[operator]
    for word in words:
        assert word in caught.value.message, caught.value.message
    return caught.value


def wanted(text: str, **files: str) -> list[str]:
    read = {"requirements.txt": text.encode(), **{f"{name}.txt": content.encode() for name, content in files.items()}}
    return [one.text for one in parse_files("requirements.txt", read).requirements]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("requests", "requests"),
        ("Requests [socks , use] >= 2 , < 3", "Requests[socks,use]>=2,<3"),
        ("a (==1.0)", "a==1.0"),
        ("a==1.0;python_version<'3.12'", "a==1.0 ; python_version<'3.12'"),
        (f"a==1.0 --hash=sha256:{A} --hash sha256:{B}", f"a==1.0 --hash=sha256:{A} --hash=sha256:{B}"),
        ("a @ https://x.test/a-1.whl", "a @ https://x.test/a-1.whl"),
    ],
)
def test_requirements_are_written_in_one_spelling(line: str, text: str) -> None:
    assert parse_requirement(line, "f:1").text == text
    assert parse_requirement(text, "f:1").text == text


@pytest.mark.parametrize(
    "line",
    [
        "git+https://x.test/y", "a @ git+https://x.test/y", "./folder", "/abs/x.whl", "file:///x.whl", "x.whl", "https://x.test/a.whl",
        "a -r other.txt", "a --index-url https://x.test", "a==1 --global-option=x", "-", "==1", "a b", "a[", "a==", "ä",
    ],
)  # fmt: skip
def test_what_is_no_plain_requirement_is_refused(line: str) -> None:
    assert refused(lambda: parse_requirement(line, "requirements.txt:7"), "requirements.txt:7").cause == "declaration"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a==1 --hash=sha256:00", ("needs 64 hexadecimal digits, and there are 2",)),
        (f"a==1 --hash=sha512:{A}", ("needs 128 hexadecimal digits, and there are 64",)),
        (f"a==1 --hash=sha1:{A[:40]}", ("'sha1' is not known",)),
        ("a==1 --hash=sha256:xyz", ("--hash is not understood",)),
        ("https://x.org/six.whl", ("address without a package's name",)),
        ("HTTPS://x.org/six-1.0-py3-none-any.whl?a=b#c", ("address without a package's name",)),
        ("six.whl", ("is a file or folder",)),
        ("ftp://x.org/six.whl", ("no address that packages are fetched from",)),
        ("file:///srv/six.whl", ("is a file or folder",)),
    ],
)
def test_a_line_that_cannot_be_used_is_called_what_it_is(line: str, words: tuple[str, ...]) -> None:
    said = refused(lambda: parse_requirement(line, "requirements.txt:3"), "requirements.txt:3", *words)
    assert said.remedy and ("six @ https" in said.remedy or not line.lower().startswith("http"))


@given(st.text(max_size=200))
def test_no_text_gives_more_than_one_requirement_to_the_installer(line: str) -> None:
    try:
        text = parse_requirement(line, "f:1").text
    except DependencyFault:
        return
    assert len(text.splitlines()) == 1 and not text.startswith("-") and "${" not in text
    assert all(word.startswith("--hash=") for word in text.split() if word.startswith("-"))
    assert parse_requirement(text, "f:1").text == text


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reading_of_a_file(data: bytes) -> None:
    with contextlib.suppress(DependencyFault):
        parse_files("requirements.txt", dict(gather("requirements.txt", lambda _: data)))


def test_lines_are_joined_and_comments_left_out() -> None:
    text = "# head\r\na==1 \\\n  --hash=sha256:aa # why\n\n  # not \\\nb==2#x\nc==3 \\"
    assert list(logical_lines(text)) == [(2, "a==1   --hash=sha256:aa"), (6, "b==2#x"), (7, "c==3")]


def test_nested_files_are_followed_below_the_folder_only() -> None:
    assert wanted("-r more.txt\na==1", more="b==2\n") == ["b==2", "a==1"]
    files = {"requirements.txt": b"-r ../x.txt\n"}
    refused(lambda: gather("requirements.txt", files.__getitem__), "requirements.txt:1", "outside")
    refused(lambda: wanted("-r requirements.txt\n"), "names itself")
    refused(lambda: gather("r", lambda _: b"-r https://x.test/r.txt"), "below")


@pytest.mark.parametrize(
    ("line", "word"),
    [("-e .", "editable"), ("--trusted-host x.test", "certificates"), ("--config-settings x", "not supported"), ("--pre x", "not supported")],
)  # fmt: skip
def test_options_that_would_weaken_the_installation_are_refused(line: str, word: str) -> None:
    refused(lambda: wanted(f"a==1\n{line}\n"), "requirements.txt:2", word)


def test_the_lint_names_what_has_no_exact_version() -> None:
    # D78
    text = b"requests>=2\nidna==3.4\nx==1.*\nurllib3\n-c c.txt\n"
    found = parse_files("requirements.txt", {"requirements.txt": text, "c.txt": b"urllib3==2.0\n"})
    assert [(one.line, one.message.split("'")[1]) for one in found.findings] == [(1, "requests"), (3, "x")]


def test_the_lint_names_what_has_no_hash_where_others_have_one() -> None:
    # D78
    text = f"a==1 --hash=sha256:{A}\nb==2\nc==3\n-c c.txt\n".encode()
    files = {"requirements.txt": text, "c.txt": f"c==3 --hash=sha256:{B}\n".encode()}
    found = parse_files("requirements.txt", files)
    assert [(one.line, one.message.split("'")[1]) for one in found.findings] == [(2, "b")]
    assert "--generate-hashes" in found.findings[0].message
    for other in (b"b==2\nc==3\n", f"a==1 --hash=sha256:{A}\n".encode()):
        assert parse_files("requirements.txt", {"requirements.txt": other}).findings == ()
    assert len(parse_files("requirements.txt", {"requirements.txt": b"--require-hashes\nb==2\n"}).findings) == 1


def test_an_index_address_has_one_spelling() -> None:
    assert parse_index("HTTPS://Index.Test:443/simple/", "x").text == "https://index.test/simple"
    assert parse_index("/srv/wheels", "x").text == "file:///srv/wheels"
    assert parse_index("http://127.0.0.1:8080/simple", "x").rule == "127.0.0.1:8080"
    for bad in ("ftp://x.test/", "https:///x", "simple", "https://x.test/a/../b", "https://x.test/%2e%2e/b", "https://x.test/?a", "https://x.test:99999/"):  # fmt: skip
        refused(lambda bad=bad: parse_index(bad, "pip.conf"), "pip.conf")


def test_credentials_in_an_index_address_are_refused_and_not_shown() -> None:
    said = refused(lambda: parse_index("https://user:s3cret@index.test/simple", "pip.conf"), "credentials")
    assert "s3cret" not in said.message + said.remedy and "s3cret" not in shown_url("https://user:s3cret@x.test/")


def test_the_operators_list_names_addresses_and_what_is_below_them() -> None:
    allowed = allow_list(("https://index.test/root",))
    require_named(parse_index("https://index.test/root/simple", "x"), allowed, "x")
    for other in (
        "https://index.test/rootless",
        "http://index.test/root",
        "https://index.test:8443/root",
        "https://index.test",
    ):
        refused(
            lambda other=other: require_named(parse_index(other, "x"), allowed, "requirements.txt:1"),
            "requirements.txt:1",
        )
    require_configured(parse_index("https://other.test", "x"), (), "x")
    refused(
        lambda: require_configured(parse_index("https://other.test", "x"), allowed, "pip.conf"), "dependencies.indexes"
    )


def test_pips_and_uvs_own_settings_are_followed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".config" / "pip").mkdir(parents=True)
    (home / ".config" / "uv").mkdir()
    (home / ".config" / "pip" / "pip.conf").write_text(
        "[global]\nindex_url = https://pip.test/simple\nextra-index-url = https://a.test/simple\n  https://b.test/simple\ncert = /c.pem\n"
    )
    environ = {"HOME": str(home), "VIRTUAL_ENV": str(tmp_path / "none"), "XDG_CONFIG_DIRS": str(tmp_path / "none")}
    found = pip_settings(environ)
    assert found.default[0] == "https://pip.test/simple" and found.certificates == "/c.pem"
    assert [url for url, _ in found.extra][:2] == ["https://a.test/simple", "https://b.test/simple"]
    assert pip_settings({**environ, "PIP_INDEX_URL": "https://env.test/simple"}).default == (
        "https://env.test/simple", "PIP_INDEX_URL"
    )  # fmt: skip
    (home / ".config" / "uv" / "uv.toml").write_text(
        '[[index]]\nname = "own"\nurl = "https://uv.test/simple"\ndefault = true\n'
        '[[index]]\nname = "only"\nurl = "https://pinned.test/simple"\nexplicit = true\n'
    )
    assert pip_settings(environ).default[0] == "https://uv.test/simple"
    assert "https://pinned.test/simple" not in [url for url, _ in pip_settings(environ).extra]
    assert (
        pip_settings({**environ, "UV_DEFAULT_INDEX": "name=https://v.test/simple"}).default[0]
        == "https://v.test/simple"
    )
    assert (
        pip_settings({**environ, "UV_INDEX": "https://a.test/simple n=https://c.test/simple"}).extra[1][0]
        == "https://c.test/simple"
    )


def test_without_settings_the_public_index_is_asked_and_broken_ones_are_passed_over(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "XDG_CONFIG_DIRS": str(tmp_path)}
    assert pip_settings(environ).default[0] == PUBLIC_INDEX
    (tmp_path / "broken").write_bytes(b"[global\n\xff=\n")
    assert pip_settings({**environ, "PIP_CONFIG_FILE": str(tmp_path / "broken")}).default[0] == PUBLIC_INDEX


PROJECT = b'[project]\nname = "x"\nversion = "1"\ndependencies = ["a>=1"]\n'


def test_a_project_declares_by_its_table_only() -> None:
    assert requirements.project_requirements(PROJECT, "pyproject.toml") == ("a>=1",)
    assert requirements.project_requirements(b"[tool.ruff]\nline-length = 100\n", "pyproject.toml") is None
    refused(
        lambda: requirements.project_requirements(b'[project]\nname="x"\ndynamic=["dependencies"]\n', "p"), "dynamic"
    )
    refused(
        lambda: requirements.project_requirements(PROJECT + b'[tool.uv.sources]\na = { git = "x" }\n', "p"), "sources"
    )
    refused(lambda: requirements.project_requirements(b"[project\n", "pyproject.toml"), "no TOML")
    assert b"dependency-groups" not in requirements.trimmed_project(PROJECT + b'[dependency-groups]\ndev = ["evil"]\n')


def test_a_lock_with_sources_of_its_own_is_refused() -> None:
    public = (parse_index(PUBLIC_INDEX, "x"),)

    def lock(source: str) -> bytes:
        return f'version = 1\n[[package]]\nname = "a"\nversion = "1"\nsource = {{ {source} }}\n'.encode()

    requirements.check(lock(f'registry = "{PUBLIC_INDEX}"'), (), public)
    requirements.check(lock('virtual = "."'), (), public)
    for source in ('git = "https://x.test/a"', 'url = "https://x.test/a.whl"', 'path = "../a"', 'directory = "/etc"'):
        said = refused(lambda source=source: requirements.check(lock(source), (), public), "a")
        assert said.cause == "refused"
    refused(lambda: requirements.check(lock('registry = "https://evil.test/simple"'), (), public), "evil.test")
    requirements.check(lock('registry = "https://own.test/simple"'), allow_list(("https://own.test",)), public)


def make(folder: Path, **files: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "tool.py").write_text(files.pop("script", "print(1)\n"))
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    return os.path.realpath(folder)


def test_the_files_beside_a_script_are_found_in_order(tmp_path: Path) -> None:
    # D06
    folder = make(tmp_path / "a")
    assert detect(folder, "tool.py", "python") is None and not declares(folder, "tool.py", "python")
    make(tmp_path / "a", pyproject_toml=PROJECT.decode())
    found = detect(folder, "tool.py", "python")
    assert found is not None and found.form == "pyproject.toml"
    make(tmp_path / "a", requirements_txt="# nothing\n")
    assert detect(folder, "tool.py", "python") is None
    make(tmp_path / "a", requirements_txt="a==1\n")
    found = detect(folder, "tool.py", "python")
    assert found is not None and found.form == "requirements.txt"
    make(tmp_path / "a", uv_lock="version = 1\n")
    found = detect(folder, "tool.py", "python")
    assert found is not None and found.form == "uv.lock"
    make(tmp_path / "a", script='# /// script\n# dependencies = ["b==2"]\n# ///\n')
    found = detect(folder, "tool.py", "python")
    assert found is not None and found.form == "script"


@pytest.mark.parametrize(
    ("block", "line"),
    [("# dependencies = [\n", 3), ("# a = 1\n#\n# dependencies = nothing\n", 5), ("# a = 1\n# a = 2\n", 4)],
)
def test_metadata_in_a_script_that_is_no_toml_is_said_with_the_scripts_line(
    tmp_path: Path, block: str, line: int
) -> None:
    folder = make(tmp_path / "a", script=f"'''A tool.'''\n# /// script\n{block}# ///\n")
    said = refused(lambda: detect(folder, "tool.py", "python"), f"tool.py:{line}: ", "PEP 723", "no TOML")
    assert said.cause == "declaration" and "at end of document" not in said.message


def test_a_project_that_is_no_toml_is_said_with_its_line() -> None:
    refused(lambda: requirements.project_requirements(b"[project]\nname = \n", "pyproject.toml"), "pyproject.toml:2: ")


def test_links_special_files_and_large_files_are_not_read(tmp_path: Path) -> None:
    # S1, S2
    folder = make(tmp_path / "a")
    (tmp_path / "secret").write_text("password\n")
    place = tmp_path / "a" / "requirements.txt"
    place.symlink_to(tmp_path / "secret")
    refused(lambda: detect(folder, "tool.py", "python"), "requirements.txt", "link")
    place.unlink()
    os.mkfifo(place)
    refused(lambda: detect(folder, "tool.py", "python"), "requirements.txt")
    place.unlink()
    place.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    refused(lambda: detect(folder, "tool.py", "python"), "larger")
    place.unlink()
    place.mkdir()
    refused(lambda: detect(folder, "tool.py", "python"), "folder")
