"""Several requests in flight: a fault is the outcome of one request, the rest are asked again, and nothing is judged twice."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.ahead import MOST, Ahead, answered
from quantspec_conformance.implementations.errors import ImplementationError
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.implementations.process import ProcessImplementation
from quantspec_conformance.protocol.messages import Answer, Hello, Identity, Ok, Request
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.outcome import CaseResult
from quantspec_conformance.suite.run import RunOptions, run_suite

FAULTY = Path(__file__).parent / "faulty" / "ahead_wire.py"
ONCE = RunOptions(repeat=0)


@contextmanager
def adapter(fault: str, number: int, log: Path, timeout: float = 20.0) -> Iterator[ProcessImplementation]:
    """An adapter that allows so many requests in flight; 0: it does not say."""
    command = [sys.executable, "-S", str(FAULTY), fault, str(number), str(log)]
    with ProcessImplementation(command, timeout=timeout, hello_timeout=20) as implementation:
        yield implementation


def case_of(number: int, note: str) -> Case:
    """An echo of a number of its own."""
    tensors = {"x": Tensor("u32", (2,), (number, 0xFF800001))}
    return Case(
        id=f"echo.any.flight.n{number}", title="", op="echo", level=0, words={"note": note}, inputs=tensors,
        outputs=tensors,
    )  # fmt: skip


def cases(count: int, *bad: int) -> list[Case]:
    """Echoes, some of which the fault strikes."""
    return [case_of(number, "bad" if number in bad else f"n{number}") for number in range(count)]


def outcomes(results: list[CaseResult]) -> dict[int, str]:
    """What did not pass, by number; the results are those of the cases in order, each once."""
    assert [result.id for result in results] == [f"echo.any.flight.n{n}" for n in range(len(results))]
    return {n: result.outcome for n, result in enumerate(results) if result.outcome != "pass"}


def read(log: Path) -> list[str]:
    """The notes that the adapter read, in order."""
    return log.read_text("utf-8").split()


def test_as_many_are_in_flight_as_the_adapter_allows(tmp_path: Path) -> None:
    """This one answers nothing before four came; asked one at a time it would never answer."""
    with adapter("gather", 4, tmp_path / "log") as implementation:
        assert isinstance(implementation, Ahead)
        assert outcomes(list(run_suite(cases(12), implementation, ONCE))) == {}
    assert read(tmp_path / "log") == ["start", *(f"n{n}" for n in range(12))]


@pytest.mark.parametrize("allowed", [0, 1])
def test_one_at_a_time_where_nothing_else_is_said(tmp_path: Path, allowed: int) -> None:
    with adapter("honest", allowed, tmp_path / "log") as implementation:
        for number, result in enumerate(run_suite(cases(6), implementation, ONCE)):
            assert result.outcome == "pass"
            assert read(tmp_path / "log") == ["start", *(f"n{n}" for n in range(number + 1))]


def test_a_large_number_is_cut_to_ours(tmp_path: Path) -> None:
    with adapter("honest", 10**6, tmp_path / "log") as implementation:
        next(iter(run_suite(cases(5 * MOST), implementation, ONCE)))
    assert len(read(tmp_path / "log")) <= 1 + MOST


#: Fault -> the outcome, the place of the case that has it counted from the bad one, and a part of the reason.
FAULTS = {
    "crash": ("crash", 0, "exit status 9"),
    "hang": ("timeout", 0, "no answer to echo"),
    "garbage": ("crash", 0, "warming up the kernels"),
    "swap": ("crash", 0, "once"),
    "extra": ("crash", 1, "once"),
}


@pytest.mark.parametrize("allowed", [1, 2, 5, 8])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_the_outcome_of_one_request_and_the_rest_are_asked_again(
    tmp_path: Path, fault: str, allowed: int
) -> None:
    outcome, place, says = FAULTS[fault]
    if fault == "swap" and allowed == 1:
        pytest.skip("there is no next request to answer first")
    with adapter(fault, allowed, tmp_path / "log", timeout=1.5 if fault == "hang" else 20) as implementation:
        results = list(run_suite(cases(20, 7, 13), implementation, ONCE))
    assert outcomes(results) == {7 + place: outcome, 13 + place: outcome}
    assert all(says in result.reason for result in results if result.outcome != "pass"), results
    seen = Counter(read(tmp_path / "log"))
    assert seen["start"] == 3, "it was started anew after each fault"
    if place == 0:
        assert seen["bad"] <= 2 + (fault != "hang"), "a request that broke is not sent again, beside one that waited"
    unsent = {7, 13, 7 + place, 13 + place}  # one at a time, an extra answer is found before the next request goes out
    assert set(seen) >= {f"n{n}" for n in range(20) if n not in unsent}


def test_every_request_breaks(tmp_path: Path) -> None:
    with adapter("crash", 8, tmp_path / "log") as implementation:
        assert outcomes(list(run_suite(cases(4, *range(4)), implementation, ONCE))) == dict.fromkeys(range(4), "crash")
    assert read(tmp_path / "log").count("start") == 4


def test_the_time_out_of_a_request_begins_with_the_answer_before(tmp_path: Path) -> None:
    """Eight requests of which each takes a third of the time-out: together they take longer, and none is late."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        FAULTY.read_text("utf-8").replace("    time.sleep(600)", "    time.sleep(0.4)\n    say(echo(message))")
    )
    command = [sys.executable, "-S", str(slow), "hang", "8", str(tmp_path / "log")]
    started = time.monotonic()
    with ProcessImplementation(command, timeout=1.5, hello_timeout=20) as implementation:
        assert outcomes(list(run_suite(cases(8, *range(8)), implementation, ONCE))) == {}
    assert time.monotonic() - started > 3


def test_asked_twice_in_flight(tmp_path: Path) -> None:
    """Each case twice: results still come in order, once."""
    with adapter("honest", 3, tmp_path / "log") as implementation:
        assert outcomes(list(run_suite(cases(9), implementation, RunOptions(repeat=1)))) == {}
    assert Counter(read(tmp_path / "log")) == {"start": 1, **{f"n{n}": 2 for n in range(9)}}


def test_a_run_that_stops_leaves_nothing_in_flight(tmp_path: Path) -> None:
    asked: list[CaseResult] = []
    with adapter("honest", 4, tmp_path / "log") as implementation:
        for result in run_suite(cases(12), implementation, ONCE, stopped=lambda: len(asked) >= 3):
            asked.append(result)
        assert [result.outcome for result in asked[:3]] == ["pass"] * 3
        assert {result.outcome for result in asked[7:]} == {"notrun"} and len(asked) == 12
        assert implementation.handle(case_of(99, "after").request) == Ok(dict(case_of(99, "").inputs))


def test_who_leaves_a_run_gets_no_answers_of_it(tmp_path: Path) -> None:
    with adapter("honest", 8, tmp_path / "log") as implementation:
        run = run_suite(cases(12), implementation, ONCE)
        assert next(run).outcome == "pass"
        run.close()  # type: ignore[attr-defined]  # pyright: ignore
        assert implementation.handle(case_of(99, "after").request) == Ok(dict(case_of(99, "").inputs))
        assert read(tmp_path / "log").count("start") == 2
        implementation.post(case_of(1, "posted").request)
        with pytest.raises(AssertionError, match="in flight"):
            implementation.handle(case_of(2, "").request)


def test_a_request_that_cannot_be_sent_ends_alone(tmp_path: Path) -> None:
    requests = [case_of(number, "fine").request for number in range(6)]
    requests[2] = Request("echo", {"id": "7"})
    with adapter("honest", 4, tmp_path / "log") as implementation:
        implementation.hello(Hello())
        left = iter(requests)
        answers = list(answered(implementation, lambda: next(left, None), 4))
    assert [isinstance(answer, Ok) for answer in answers] == [True, True, False, True, True, True]
    assert isinstance(answers[2], ImplementationError) and "cannot be sent" in answers[2].message


def test_in_this_process_requests_are_handled_one_by_one() -> None:
    handled: list[Request] = []

    class Kept(Law):
        def hello(self, hello: Hello) -> Identity:
            return Identity(name="kept", max_in_flight=8)

        def handle(self, request: Request) -> Answer:
            handled.append(request)
            return super().handle(request)

    def following(left: Iterator[Case]) -> Callable[[], Request | None]:
        return lambda: next((case.request for case in left), None)

    for number, answer in enumerate(answered(Kept(), following(iter(cases(5))), 8)):
        assert isinstance(answer, Ok) and len(handled) == number + 1
