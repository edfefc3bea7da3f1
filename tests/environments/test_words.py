"""What an installer's words become: versions, conflicts and refusals, each said once and with what mends it. Nothing is run."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.environments import npm_words, reach, uv_words
from tamis.environments.model import DependencyFault, Options, Recipe, Step
from tamis.sandbox.model import Denial, RunOutcome
from tamis.sandbox.network.hosts import opening

STEP = Step(name="install", command=("/bin/sh",))
HOST = "index.test:443"
RECIPE = Recipe(kind="python", form="requirements.txt", identity={}, files=(), steps=(STEP,), hosts=(HOST,))
NOT_SOLVED = "  × No solution found when resolving dependencies:\n  ╰─▶ "
UNSATISFIABLE = "we can conclude that your requirements are unsatisfiable."


def said(words: str, *denials: Denial) -> DependencyFault:
    outcome = RunOutcome(
        kind="error",
        exit_code=1,
        stderr=words.encode(),
        denials=denials,
        denied_hosts=tuple(one.target for one in denials),
    )
    return uv_words.explain(RECIPE, STEP, outcome)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("Because slug==8.0.4 depends on text>=1.3 and you require slug==8.0.4, we can conclude that you require text>=1.3.\n"
             f"      And because you require text==1.2, {UNSATISFIABLE}"),
            "slug==8.0.4 needs text>=1.3, and text==1.2 is asked for",
        ),
        (
            ("Because slug>=8.0.0,<=8.0.4 depends on text>=1.21.1,<3 and you require slug>=8,<9, we can conclude that you require text>=1.3.\n"
             f"And because you require text<1.2, {UNSATISFIABLE}"),
            "slug>=8.0.0,<=8.0.4 needs text>=1.21.1,<3, and slug>=8,<9 and text<1.2 are asked for",
        ),
        (f"Because you require six==1.16.0 and six==1.17.0, {UNSATISFIABLE}", "six==1.16.0 and six==1.17.0 are asked for"),
        (
            ("Because flask>=3.0.0,<=3.0.3 depends on werkzeug>=3.0.0 and flask>=3.1.0 depends on werkzeug>=3.1, we can conclude that "
             f"flask>=3.0.0 depends on werkzeug>=3.0.0.\nAnd because you require flask>=3 and werkzeug<2, {UNSATISFIABLE}"),
            ("flask>=3.0.0,<=3.0.3 needs werkzeug>=3.0.0, and flask>=3.1.0 needs werkzeug>=3.1, and flask>=3.0.0 needs werkzeug>=3.0.0, "
             "and flask>=3 and werkzeug<2 are asked for"),
        ),
    ],
)  # fmt: skip
def test_a_conflict_is_said_with_who_needs_what_each_once(words: str, message: str) -> None:
    fault = said(NOT_SOLVED + words)
    assert (fault.cause, fault.message) == ("conflict", f"the requirements contradict each other: {message}")


@pytest.mark.parametrize(
    ("words", "message", "package"),
    [
        (f"Because there is no version of slug==99.0 and you require slug==99.0, {UNSATISFIABLE}", "there is no slug==99.0", "slug==99.0"),
        (
            f"Because only six<=1.17.0 is available and you require six>=1.18,<1.19, {UNSATISFIABLE}",
            "there is no six>=1.18,<1.19; there is six <=1.17.0", "six>=1.18,<1.19",
        ),
        (
            ("Because only the following versions of thread are available:\n          thread==1.1\n          thread==2.1\n"
             f"      and you require thread>=3, {UNSATISFIABLE}"),
            "there is no thread>=3; there is thread 1.1, 2.1", "thread>=3",
        ),
        (
            ("Because only thread==2.1 is available and needle==1.0 depends on thread>=3, we can conclude that needle==1.0 cannot be used.\n"
             f"And because you require needle==1.0, {UNSATISFIABLE}"),
            "there is no thread>=3, which needle==1.0 needs; there is thread 2.1", "thread>=3",
        ),
    ],
)  # fmt: skip
def test_a_version_that_there_is_not_is_said_with_those_that_there_are(words: str, message: str, package: str) -> None:
    fault = said(NOT_SOLVED + words)
    assert (fault.cause, fault.message, fault.package) == ("version", message, package)


@pytest.mark.parametrize("explain", [uv_words.explain, npm_words.explain])
def test_an_index_at_an_address_that_is_not_opened_is_told_the_exact_setting(explain: object) -> None:
    assert explain in (uv_words.explain, npm_words.explain)
    for reason, address, rule in (
        ("index.test leads only to addresses that are not public (203.0.113.80)", "203.0.113.80", "203.0.113.80/32"),
        ("index.test is at fd00::1, which is not public", "fd00::1", "fd00::1/128"),
    ):
        outcome = RunOutcome(kind="error", stderr=b"x", denials=(Denial(HOST, reason),), denied_hosts=(HOST,))
        fault = explain(RECIPE, STEP, outcome)  # type: ignore[operator]
        assert fault.cause == "network" and fault.denied == (HOST,)
        assert f"the index host index.test is at {address}, which is not public" in fault.message
        assert fault.remedy == opening("allowCidrs", rule)
        assert "it may reach" not in fault.message


def test_a_refusal_without_an_address_keeps_the_proxys_reason() -> None:
    fault = said("x", Denial(HOST, "too many connections are open"))
    assert "too many connections are open" in fault.message and HOST in fault.message


def test_a_host_that_is_no_index_is_told_so() -> None:
    fault = said("x", Denial("files.test:443", "files.test is in no list"))
    assert "was not reached" not in fault.message  # the index was
    assert "files.test:443 was refused" in fault.message and HOST in fault.message
    assert "dependencies.indexes" in fault.remedy and "allowCidrs" not in fault.remedy


@given(st.text(max_size=300))
def test_any_words_give_a_fault_with_a_sentence(words: str) -> None:
    assert said(words).message
    assert said(words, Denial(HOST, words)).message


@given(st.lists(st.sampled_from(["Because", "only", "a==1", "b>=2,<3", "is available", "you require", "depends on", "and", "conclude that", "the following versions of", "are available:", "no version of", ",", "."]), max_size=60))  # fmt: skip
def test_any_order_of_the_resolvers_words_gives_a_fault(words: list[str]) -> None:
    assert said(NOT_SOLVED + " ".join(words)).message


def test_index_hosts_are_looked_up_once_and_what_is_not_open_is_said() -> None:
    options = Options(store="/nowhere", pin=(("near.test", "127.0.0.1"), ("open.test", "127.0.0.2")), allow_cidrs=("127.0.0.2/32",))  # fmt: skip
    found = asyncio.run(reach.unreached(("near.test:443", "open.test:80", "near.test:443", "10.1.2.3:8080"), options))
    assert [one.host for one in found] == ["near.test:443", "10.1.2.3:8080"]
    assert found[0].reason == "the index host near.test is at 127.0.0.1, which is not public"
    assert found[0].remedy == opening("allowCidrs", "127.0.0.1/32")
    assert found[1].remedy == opening("allowCidrs", "10.1.2.3/32")


def test_a_name_server_that_is_silent_costs_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(3600)
        raise AssertionError(host, port)

    monkeypatch.setattr(reach, "_look_up", silent)
    found = asyncio.run(reach.unreached(("a.test:443", "b.test:443"), Options(store="/nowhere"), seconds=0.05))
    assert [one.host for one in found] == ["a.test:443", "b.test:443"] and "within 0.05 s" in found[0].reason


def test_a_name_that_nobody_knows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    [found] = asyncio.run(reach.unreached(("no-such-name.invalid:443",), Options(store="/nowhere"), seconds=3600))
    assert "no-such-name.invalid was not found" in found.reason and "policy.pin" in found.remedy
