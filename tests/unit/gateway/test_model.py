from typing import Any

import pytest

from redrive.core.errors import ConfigError
from redrive.gateway import Gateway, ModelConfig
from tests.unit.gateway.stage import a_model


def test_every_mistake_in_a_model_is_told_at_once() -> None:
    wrong: dict[str, Any] = {
        "base_url": "ftp://host",
        "model_name": "",
        "api_key_env": "sk-not-a-name",
        "wire": "carrier pigeon",
        "concurrency": 0,
        "requests_per_minute": -1,
        "tokens_per_minute": True,
        "queue_size": 1.5,
        "batch_size": 0,
        "batch_wait": "soon",
        "batch_path": "batch",
        "attempt_timeout": 0,
        "connect_timeout": -1,
        "deadline": 0,
        "postpone_after": None,
        "max_answer_bytes": "lots",
    }
    wrong.pop("postpone_after")
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**wrong)

    assert sorted(line.partition(":")[0] for line in caught.value.mistakes) == sorted(wrong)


def test_a_key_given_instead_of_its_variable_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        a_model(api_key_env="sk-1234567890abcdef")

    assert "sk-1234567890abcdef" not in str(caught.value)


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        a_model(base_url="http://me:opensesame@host/v1")

    assert "opensesame" not in str(caught.value)


def test_every_mistake_in_a_table_of_models_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    models: dict[Any, Any] = {
        "bad name": a_model(),
        "twin": a_model(base_url="http://provider.test/v1/"),
        "keyless": a_model(model_name="m2", api_key_env="NO_SUCH_KEY"),
        "strange": {"base_url": "http://provider.test"},
    }
    with pytest.raises(ConfigError) as caught:
        Gateway(models)

    assert len(caught.value.mistakes) == 4
    assert "NO_SUCH_KEY" in str(caught.value)


@pytest.mark.parametrize("models", [{}, None, []])
def test_a_gateway_has_one_model_at_least(models: Any) -> None:
    with pytest.raises(ConfigError, match="models"):
        Gateway(models)


def test_a_mistake_in_the_policy_is_told() -> None:
    policy: Any = "often"
    with pytest.raises(ConfigError, match="retry"):
        Gateway({"fast": a_model()}, policy=policy)
