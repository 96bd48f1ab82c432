from hypothesis import given
from hypothesis import strategies as st

from redrive.core.excerpt import excerpt

any_text = st.text(st.characters(exclude_categories=[]))


@given(any_text, st.integers(3, 60))
def test_an_excerpt_fits_and_is_the_beginning(text: str, limit: int) -> None:
    found = excerpt(text, limit=limit)

    assert len(found.encode("utf-8", "surrogatepass")) <= limit
    assert found == text or (found.endswith("…") and text.startswith(found[:-1]))


@given(any_text)
def test_a_text_that_fits_is_left_alone(text: str) -> None:
    assert excerpt(text, limit=len(text.encode("utf-8", "surrogatepass"))) is text
