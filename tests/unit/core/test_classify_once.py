"""What is thought of a class of exceptions is remembered; what is thought of one of them is not."""

import errno
from typing import Any

import pytest

from redrive.core.classify import Classifier
from redrive.core.outcome import GiveUp


class Refused(Exception):
    pass


def with_attributes(error: Exception, **attributes: Any) -> Exception:
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def raised_while_handling(error: Exception, cause: Exception, *, suppressed: bool = False) -> Exception:
    error.__context__ = cause
    error.__suppress_context__ = suppressed
    return error


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (lambda: with_attributes(Refused(), status=404), "HTTP 404"),
        (lambda: with_attributes(Refused(), code="insufficient_quota"), "code insufficient_quota"),
        (lambda: raised_from(Refused(), TimeoutError()), "a network error"),
        (lambda: raised_while_handling(Refused(), TimeoutError()), "a network error"),
        (lambda: ExceptionGroup("both", [Refused(), TimeoutError()]), "a network error"),
        (lambda: ExceptionGroup("one", [GiveUp("no")]), "the handler gave up"),
    ],
    ids=["status", "code", "cause", "context", "group", "give up"],
)
def test_one_that_says_more_is_judged_by_what_it_says(odd: Any, why: str) -> None:
    rules = Classifier()
    plain = rules(Refused())

    assert [rules(error).why for error in (odd(), Refused(), odd())] == [why, plain.why, why]
    assert rules(Refused()) == plain != rules(odd())


def test_a_delay_that_one_was_told_is_not_told_to_the_next() -> None:
    rules = Classifier()
    told = [rules(error).told for error in (Refused(), with_attributes(Refused(), retry_after=7), Refused())]

    assert [delay.total_seconds() if delay else None for delay in told] == [None, 7, None]


def test_a_suppressed_context_does_not_count() -> None:
    rules = Classifier()

    assert rules(Refused()) == rules(raised_while_handling(Refused(), TimeoutError(), suppressed=True))


def test_the_number_of_an_os_error_decides_each_time() -> None:
    rules = Classifier()
    numbers = (errno.ENOSPC, errno.EHOSTUNREACH, errno.ENOSPC)

    assert [rules(OSError(number, "")).why == "a network error" for number in numbers] == [False, True, False]
    assert rules(ConnectionError()).why == rules(ConnectionError()).why == "a network error"


def test_a_function_is_asked_each_time() -> None:
    rules = Classifier(permanent=[lambda error: "no" in str(error)])

    assert [rules(Refused(text)).retry for text in ("yes", "no", "yes", "no")] == [True, False, True, False]


def test_rules_do_not_share_what_they_remember() -> None:
    strict, patient = Classifier(permanent=[Refused]), Classifier(retryable=[Refused])

    for _ in range(2):
        assert (strict(Refused()).retry, patient(Refused()).retry) == (False, True)


def test_a_class_that_cannot_be_remembered_is_judged_all_the_same() -> None:
    class Unhashable(type):
        __hash__ = None  # type: ignore[assignment]

    class Odd(Exception, metaclass=Unhashable):
        pass

    assert Classifier()(Odd()).retry


def test_what_is_remembered_is_bounded() -> None:
    rules = Classifier()
    for number in range(3000):
        assert rules(type(f"Made{number}", (Exception,), {})()).retry

    assert len(rules._by_class) <= 1024  # noqa: SLF001 - it is not to be seen in any other way
