"""What is about a person, and may be seen only by those who ask for it."""

import pytest
from hypothesis import given

from redrive.core.privacy import MASK, PrivacyFilter
from tests.unit.core.letters import json_values, texts

FILTER = PrivacyFilter(personal=True)


@pytest.mark.parametrize(
    "name",
    [
        *("email", "Email", "e-mail", "customer_email", "emailAddress", "mail", "reply_mail", "phone", "phoneNumber"),
        *("mobile", "fax", "address", "billing_address", "shippingAddress", "street", "zip", "zipCode", "postal_code"),
        *(
            "birth_date",
            "birthDate",
            "date_of_birth",
            "birthday",
            "dob",
            "firstName",
            "last_name",
            "FULL-NAME",
            "surname",
        ),
        *("username", "customerName", "cardholder", "passport_number", "tax_id", "ip", "clientIp", "x-forwarded-for"),
        *("iban", "card", "cardNumber", "ssn", "password", "authorization"),
    ],
)
def test_a_value_under_a_personal_name_is_masked_at_any_depth(name: str) -> None:
    assert FILTER.mask([{"order": {name: {"inner": 1}}}]) == [{"order": {name: MASK}}]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "id",
            "user_id",
            "tenant_id",
            "order_id",
            "name",
            "product_name",
            "sku",
            "price",
            "city",
            "country",
            "status",
        ),
        *(
            "created_at",
            "queue",
            "trip",
            "zipper",
            "ship",
            "microphone",
            "mailbox",
            "birthplaces",
            "addressee",
            "filename",
        ),
    ],
)
def test_an_innocent_name_is_left_alone(name: str) -> None:
    assert FILTER.mask({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to ann.lee+x@example.co.uk now", f"write to {MASK} now"),
        ("<jörg@münchen.de>", f"<{MASK}>"),
        ("to=ann%40example.com&n=1", f"to={MASK}&n=1"),
        ("call +49 170 1234567 or (555) 123-4567", f"call {MASK} or {MASK}"),
        ("call 555-123-4567, not 555.123.4567", f"call {MASK}, not {MASK}"),
        ("paid by 4111 1111 1111 1111.", f"paid by {MASK}."),
        ("paid by 378282246310005", f"paid by {MASK}"),
        ("from DE89370400440532013000 TODAY", f"from {MASK} TODAY"),
        ("from GB82 WEST 1234 5698 7654 32", f"from {MASK}"),
        ("first_name=Ann&last_name=Lee&id=4", f"first_name={MASK}&last_name={MASK}&id=4"),
        ("customer[street]=12+High+St&x=1", f"customer[street]={MASK}&x=1"),
        ("query=email=ann", f"query=email={MASK}"),
        ("Order(email='ann', n=1)", f"Order(email={MASK}, n=1)"),
        ('{"address": "12 \\"High\\" St", "n": 1', f'{{"address": {MASK}, "n": 1'),
        ("{'street': \"Ann's\", 'n': 1}", f"{{'street': {MASK}, 'n': 1}}"),
        ('{"address": {"line1": "High St"}, "n": 1', f'{{"address": {MASK}, "n": 1'),
        ('{"phones": ["1", "2"], "n": 1', f'{{"phones": {MASK}, "n": 1'),
        ('{"address": "cut sho', f'{{"address": {MASK}'),
        ('<o><street no="1">High St</street><id>4</id></o>', f'<o><street no="1">{MASK}</street><id>4</id></o>'),
        ("<password>open</password>", f"<password>{MASK}</password>"),
        ("<address>\n <city>York</city></address>", "<address>\n <city>York</city></address>"),
        ("First name: Ann\nId: 4\r\nAddress: 12 High St\r\n", f"First name: {MASK}\nId: 4\r\nAddress: {MASK}\r\n"),
        ("password=x, email=y", f"password={MASK}, email={MASK}"),
    ],
)
def test_what_is_personal_inside_text_is_masked(text: str, masked: str) -> None:
    assert FILTER.text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        *("lodash@4.17.21 is missing", "user@localhost", "2026-01-02T03:04:05+00:00", "1767322345123", "a@b"),
        *("1767322345123456789", "4111111111111112", "order 4242-1234-5678", "10.20.30.40:5432 refused"),
        *(
            "550e8400-e29b-41d4-a716-446655440000",
            "DE00370400440532013000",
            "v1.2.3-beta+build.5",
            "KeyError: 'address'",
        ),
        *("value is not a valid email address: it has no @", "street", "x = y", "a: b", "+0200", "1,234,567,890"),
    ],
)
def test_innocent_text_is_left_alone(text: str) -> None:
    assert FILTER.text(text) == text


def test_the_number_of_a_card_is_masked_as_a_number_too() -> None:
    assert FILTER.mask([4111111111111111, 4111111111111112, 1767322345123, True, 4.5]) == [
        *(MASK, 4111111111111112, 1767322345123, True, 4.5)
    ]


def test_personal_data_is_left_to_those_who_asked_for_no_more_than_secrets() -> None:
    value = {"email": "ann@example.com", "said": "call +49 170 1234567", "n": 4111111111111111}

    assert PrivacyFilter().mask(value) == value


@given(value=json_values)
def test_a_mask_stays_what_it_is(value: object) -> None:
    once = FILTER.mask(value)

    assert FILTER.mask(once) == once


@given(text=texts)
def test_any_text_can_be_masked(text: str) -> None:
    assert isinstance(FILTER.text(f"email={text} '{text}': \"{text} <street>{text}\n{text}: {text}@{text}"), str)
