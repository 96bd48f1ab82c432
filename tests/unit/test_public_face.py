import types

import redrive
import redrive.testing


def public_names(module: types.ModuleType) -> set[str]:
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }


def test_the_public_names_are_sorted_and_there_are_no_others() -> None:
    for module in (redrive, redrive.testing):
        assert module.__all__ == sorted(module.__all__)
        assert set(module.__all__) == public_names(module)


def test_every_exception_of_ours_has_one_root() -> None:
    exceptions = [
        value
        for name in redrive.__all__
        if isinstance(value := getattr(redrive, name), type) and issubclass(value, Exception)
    ]

    assert {error for error in exceptions if not issubclass(error, redrive.RedriveError)} == {
        redrive.GiveUp,
        redrive.InvalidPayload,
        redrive.RetryLater,
    }


def test_the_first_glance_shows_what_a_program_needs() -> None:
    needed = {
        "App",
        "GiveUp",
        "Message",
        "Delivery",
        "RetryLater",
        "RetryPolicy",
        "DeadLetterPlace",
        "dead_letter",
        "connect",
    }

    assert needed <= set(redrive.__all__)
