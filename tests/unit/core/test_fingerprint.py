"""What makes two failures the same."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given

from redrive.core.failure import Failure
from redrive.core.fingerprint import fingerprint, mask, user_frame
from tests.unit.core.letters import texts


def failure_of(message: str, *, error: type[Exception] = ValueError) -> Failure:
    with pytest.raises(error) as caught:
        raise error(message)
    return Failure.of(caught.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 4711 not found", "order 12 not found"),
        ("user 3fa85f64-5717-4562-b3fc-2c963f66afa6", "user aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"),
        ("object at 0x7f3a2b1c", "object at 0x00ff"),
        ("hash deadbeefcafe", "hash 0123456789ab"),
        ("no route to 10.0.0.5:6379", "no route to 192.168.1.1:80"),
        ("mail to ann@example.org", "mail to bob.smith+x@mail.example.com"),
        ("field 'name' is missing", "field 'street' is missing"),
        ('no key "a b"', 'no key "c"'),
        ("ord_8f3kZ2 refused", "ord_9x1 refused"),
        ("at 2026-03-01T12:00:00", "at 2027-01-31T08:15:59"),
        ("took 3.2 s", "took 12 s"),
        ("a  b\nc", "a b c"),
    ],
)
def test_what_varies_from_case_to_case_does_not_count(one: str, other: str) -> None:
    assert failure_of(one).fingerprint == failure_of(other).fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("out of stock", "out of money"),
        ("can't read the disk, it's full", "can't read the net, it's full"),
    ],
)
def test_another_text_is_another_failure(one: str, other: str) -> None:
    assert failure_of(one).fingerprint != failure_of(other).fingerprint


def test_another_type_is_another_failure() -> None:
    assert failure_of("boom").fingerprint != failure_of("boom", error=KeyError).fingerprint


def test_another_function_is_another_failure() -> None:
    def elsewhere() -> Failure:
        with pytest.raises(ValueError, match="boom") as caught:
            raise ValueError("boom")
        return Failure.of(caught.value)

    assert failure_of("boom").fingerprint != elsewhere().fingerprint


def test_the_value_never_changes_between_versions() -> None:
    assert fingerprint("shop.Refused", frame="shop.orders:charge", message="order 7 refused") == "e09817122005ed61"


@given(texts, texts, texts)
def test_a_fingerprint_is_sixteen_hexadecimal_characters(error_type: str, frame: str, message: str) -> None:
    found = fingerprint(error_type, frame=frame, message=message)

    assert len(found) == 16
    assert set(found) <= set("0123456789abcdef")


@pytest.mark.parametrize("text", ["a" * 10**6, "'" * 10**6, "a@" * 10**6, "1." * 10**6, "a-" * 10**6])
def test_only_the_beginning_of_a_text_counts(text: str) -> None:
    assert mask(text) == mask(text[:512])


def test_the_frame_is_the_innermost_of_the_users_code() -> None:
    def decode() -> None:
        json.loads("{")

    with pytest.raises(ValueError, match="Expecting") as caught:
        decode()

    assert user_frame(caught.tb) == f"{__name__}:test_the_frame_is_the_innermost_of_the_users_code.<locals>.decode"


def test_without_a_traceback_there_is_no_frame() -> None:
    assert Failure.of(ValueError()).frame == ""


def module_at(path: Path, source: str) -> ModuleType:
    path.parent.mkdir(parents=True)
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_application_installed_like_a_library_counts_by_its_outermost_frame(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "site-packages"
    client = module_at(folder / "http_client" / "client.py", "def send(): raise OSError('refused')\n")
    shop = module_at(folder / "shop_app" / "shop.py", "def charge(client): client.send()\n")
    with pytest.raises(OSError, match="refused") as caught:
        shop.charge(client)

    assert user_frame(caught.tb.tb_next) == "shop:charge"  # without this test's own frame, which is the user's


def test_a_fingerprint_never_changes_between_versions() -> None:
    message = "order 4711 of ann@example.org:\n timeout\u2003after 3.2 s, 'x' at 0x7f3a"

    assert fingerprint("shop.Refused", frame="shop:charge", message=message) == "256aeaf46f847118"


@given(texts)
def test_the_same_failure_has_the_same_fingerprint_each_time(text: str) -> None:
    assert fingerprint("E", frame="", message=text) == fingerprint("E", frame="", message=text)
    assert fingerprint("E", frame="f", message=text) != fingerprint("E", frame="", message=text)
