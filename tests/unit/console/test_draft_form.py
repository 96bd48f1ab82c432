import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.console.draft_form import FORMS, Unreadable, body_of, form_of, headers_of, headers_text, mistake_in
from redrive.triage.editor import Draft
from tests.unit.core.letters import headers, json_values


def as_a_browser_sends_it(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


@given(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), st.sampled_from(["", *FORMS]))
def test_a_body_that_nobody_changed_comes_back_byte_for_byte(body: bytes, wanted: str) -> None:
    form = form_of(Draft(body, ()), wanted)

    assert form is not None
    assert body_of(as_a_browser_sends_it(form.body), form.form, before=body) == body


@given(json_values, st.sampled_from([(",", ":"), (", ", ": ")]), st.sampled_from(["ascii", "unicode"]))
def test_json_that_nobody_changed_comes_back_byte_for_byte(
    value: object, separators: tuple[str, str], letters: str
) -> None:
    body = json.dumps(value, separators=separators, ensure_ascii=letters == "ascii").encode("utf-8", "replace")
    form = form_of(Draft(body, ()))

    assert form is not None
    assert body_of(as_a_browser_sends_it(form.body), form.form, before=body) == body


@given(headers)
def test_headers_that_nobody_changed_come_back_byte_for_byte(given_headers: tuple[tuple[str, bytes], ...]) -> None:
    text = headers_text(given_headers)

    assert text is None or headers_of(as_a_browser_sends_it(text)) == given_headers


def test_json_is_laid_out_to_be_edited_and_kept_as_it_was_written() -> None:
    before = b'{"order":1,"items":[1.10,"a: b, c"]}'
    form = form_of(Draft(before, ()))

    assert form is not None
    assert form.form == "text"  # 1.10 would come back as 1.1
    tidy = b'{"order":1,"items":[1.5,"a: b, c"]}'
    laid_out = form_of(Draft(tidy, ()))
    assert laid_out is not None
    assert laid_out.form == "json"
    assert laid_out.body.splitlines()[1] == '  "order": 1,'
    edited = laid_out.body.replace("1.5", "12345678901234567890.10")
    assert body_of(edited, "json", before=tidy) == b'{"order":1,"items":[12345678901234567890.10,"a: b, c"]}'


@pytest.mark.parametrize(
    ("body", "forms"),
    [
        (b'{"a":1}', ("json", "text", "hex", "base64")),
        (b"plain\ntext", ("text", "hex", "base64")),
        (b"all\r\nlines\r\n", ("text", "hex", "base64")),
        (b"some\r\nlines\n", ("hex", "base64")),
        (b"\xff\x00", ("hex", "base64")),
        (b"a\x00b", ("hex", "base64")),
    ],
)
def test_only_forms_that_keep_every_byte_are_offered(body: bytes, forms: tuple[str, ...]) -> None:
    found = form_of(Draft(body, ()))

    assert found is not None
    assert found.forms == forms


def test_a_large_body_has_no_form_and_many_headers_have_no_field() -> None:
    assert form_of(Draft(b"x" * 100_000, ())) is None
    many = form_of(Draft(b"x", tuple((f"h{n}", b"v") for n in range(5000))))
    assert many is not None
    assert many.headers is None


@pytest.mark.parametrize(
    ("text", "form"), [("zz", "hex"), ("abc", "hex"), ("a", "base64"), ("é", "base64"), ("\ud800", "text")]
)
def test_a_body_that_is_not_what_it_says_is_refused(text: str, form: str) -> None:
    with pytest.raises(Unreadable, match=f"not what it should be in {form}"):
        body_of(text, form, before=b"")


@pytest.mark.parametrize("line", ["no colon", ": no name", " a: b", "a:: not base64!"])
def test_a_line_that_is_no_header_is_named(line: str) -> None:
    with pytest.raises(Unreadable, match="Headers, line 2"):
        headers_of(f"fine: yes\n{line}")


def test_a_mistake_in_json_is_named_with_its_line() -> None:
    assert mistake_in('{\n  "a": 1\n  "b": 2\n}') == "Line 3, column 3: Expecting ',' delimiter."
    assert mistake_in("[" * 100_000) == "It is nested too deeply."
    assert mistake_in('{"a": 1}') == ""
