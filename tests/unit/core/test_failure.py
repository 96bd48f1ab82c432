"""What is kept of an exception, whatever the exception is."""

import importlib
import runpy
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest

from redrive.core.errors import BrokerUnavailable
from redrive.core.failure import MESSAGE_LIMIT, Failure
from redrive.core.outcome import GiveUp, RetryLater


def raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Nested:
    class OutOfStock(Exception):
        pass


class Booby(Exception):
    """Every property that is looked at goes off."""

    @property
    def code(self) -> NoReturn:
        raise RuntimeError("boom")

    status_code = severity = code


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ValueError(), "ValueError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (Nested.OutOfStock(), f"{__name__}.Nested.OutOfStock"),
        (GiveUp(), "redrive.GiveUp"),
        (BrokerUnavailable(), "redrive.BrokerUnavailable"),
    ],
)
def test_the_type_has_a_readable_name(error: BaseException, name: str) -> None:
    assert Failure.of(error).error_type == name


def test_the_message_is_what_the_exception_says() -> None:
    assert Failure.of(ValueError("no stock")).error_message == "no stock"


@pytest.mark.parametrize("error", [Unprintable(), Booby(Unprintable())])
def test_an_exception_without_a_text_is_described(error: BaseException) -> None:
    assert Failure.of(error, stack=True).error_message == "<its text cannot be had: RuntimeError>"


def test_a_property_that_raises_is_passed_over() -> None:
    failure = Failure.of(Booby("text"))

    assert (failure.error_code, failure.severity, failure.error_message) == (None, None, "text")


@pytest.mark.parametrize("text", ["x" * 50_000_000, "ü" * 10_000, "\ud800" * 10_000])
def test_a_huge_text_is_cut(text: str) -> None:
    failure = Failure.of(ValueError(text), stack=True)

    assert len(failure.error_message.encode("utf-8", "surrogatepass")) <= MESSAGE_LIMIT
    assert failure.error_message.endswith("…")
    assert failure.error_message[:1000] == text[:1000]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GiveUp("no", code="no_customer"), "no_customer"),
        (RetryLater(code="busy"), "busy"),
        (SystemExit(3), "3"),
        (ValueError(), None),
    ],
)
def test_the_code_of_an_exception_is_kept(error: BaseException, code: str | None) -> None:
    assert Failure.of(error).error_code == code


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"status_code": 503}, "503"),
        ({"code": 404, "status_code": 503}, "404"),
        ({"code": None, "status_code": "x"}, "x"),
        ({"code": "", "status_code": 500}, "500"),
        ({"code": True}, None),
        ({"code": lambda: 1}, None),
        ({"code": "c" * 9999}, "c" * 253 + "…"),
    ],
)
def test_a_code_is_found_on_foreign_exceptions(attributes: dict[str, object], code: str | None) -> None:
    error = ValueError()
    error.__dict__.update(attributes)

    assert Failure.of(error).error_code == code


def test_the_severity_of_a_give_up_is_kept() -> None:
    assert Failure.of(GiveUp("no", severity="high")).severity == "high"


def test_a_group_tells_what_is_inside() -> None:
    group = ExceptionGroup("both", [ValueError("one"), ExceptionGroup("inner", [KeyError("two")])])

    assert Failure.of(group).error_message == "both (2 sub-exceptions): ValueError: one; KeyError: 'two'"


def test_there_is_no_stack_unless_asked_for() -> None:
    assert Failure.of(raised(ValueError())).stack is None


def test_a_stack_names_places_and_never_values() -> None:
    secret = "hunter2"  # noqa: S105, F841 - a local that must not be seen
    stack = Failure.of(raised(ValueError("boom")), stack=True).stack

    assert stack is not None
    assert f'File "{__file__}"' in stack
    assert "in raised" in stack
    assert stack.endswith("ValueError: boom")
    assert "hunter2" not in stack


def test_a_stack_shows_the_chain_of_causes() -> None:
    error = raised(ValueError("no order"))
    error.__cause__ = raised(KeyError("id"))
    stack = Failure.of(error, stack=True).stack or ""

    assert stack.index("KeyError: 'id'") < stack.index("direct cause") < stack.index("ValueError: no order")


def test_cyclic_causes_end() -> None:
    first, second = raised(ValueError("first")), raised(ValueError("second"))
    first.__cause__, second.__cause__ = second, first

    assert (Failure.of(first, stack=True).stack or "").count("direct cause") == 1


def test_a_deep_stack_is_cut_in_the_middle_and_bounded() -> None:
    def dive(depth: int) -> int:
        return dive(depth + 1) + 1

    with pytest.raises(RecursionError) as caught:
        dive(0)
    stack = Failure.of(caught.value, stack=True).stack or ""

    assert "more frames" in stack
    assert len(stack.encode()) <= 16 * 1024


def test_a_stack_of_long_names_is_bounded_and_keeps_its_end() -> None:
    name = "f" * 900
    source = f"def {name}(n):\n    return {name}(n - 1) if n else 1 / 0\n{name}(40)"
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile(source, "long.py", "exec"), {})  # noqa: S102 - a name nobody wants to type
    stack = Failure.of(caught.value, stack=True).stack or ""

    assert len(stack.encode()) <= 16 * 1024
    assert stack.startswith("…")
    assert stack.endswith("ZeroDivisionError: division by zero")


def test_a_failure_holds_no_frame_alive() -> None:
    failure = Failure.of(raised(ValueError("boom")), stack=True)

    assert not any(isinstance(value, BaseException | FrameType) for value in failure)


def test_the_names_are_the_same_whether_a_module_is_imported_or_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "redrive_shop.py"
    path.write_text(
        "from redrive.core.failure import Failure\n"
        "class Refused(Exception): pass\n"
        "def charge(): raise Refused('no')\n"
        "try: charge()\n"
        "except Refused as error: told = Failure.of(error)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = runpy.run_path(str(path), run_name="__main__")["told"]
    run_as_module = runpy.run_module("redrive_shop", run_name="__main__", alter_sys=True)["told"]
    imported = importlib.import_module("redrive_shop").told
    del sys.modules["redrive_shop"]

    assert (imported.error_type, imported.frame) == ("redrive_shop.Refused", "redrive_shop:charge")
    assert run == run_as_module == imported


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no stock"),
        GiveUp("no", code="no_customer", severity="high"),
        Unprintable(),
        Booby("x"),
        SystemExit(3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_in_brief_a_failure_is_the_same_without_severity_stack_and_frame(error: BaseException) -> None:
    whole = Failure.of(raised(error), stack=True)

    assert Failure.brief(error) == whole._replace(severity=None, stack=None, frame="")
