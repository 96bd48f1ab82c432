from pathlib import Path

import pytest

from redrive.config import Settings, check_apart, load_settings
from redrive.core.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mistakes(environ: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ)
    return caught.value.mistakes


def test_without_file_and_environment_the_defaults_hold() -> None:
    assert load_settings({}) == Settings(
        broker="sqlite:///redrive.db", store="sqlite:///letters.db", log_level="info", log_format="auto", color=True
    )


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(folder: Path) -> None:
    (folder / "redrive.toml").write_text('broker = "sqlite:///file.db"\n[log]\nlevel = "debug"\n', "utf-8")

    settings = load_settings({"REDRIVE_BROKER": "sqlite:///env.db"})

    assert settings == Settings(broker="sqlite:///env.db", log_level="debug")


def test_the_file_can_be_named(folder: Path) -> None:
    (folder / "shop.toml").write_text('log.format = "json"\n', "utf-8")

    assert load_settings({"REDRIVE_CONFIG": "shop.toml"}).log_format == "json"


def test_no_color_is_heard_unless_it_is_empty() -> None:
    assert load_settings({"NO_COLOR": "1"}).color is False
    assert load_settings({"NO_COLOR": ""}).color is True


def test_every_mistake_is_reported_at_once_with_its_key_and_what_was_expected(folder: Path) -> None:
    (folder / "redrive.toml").write_text(
        'brokr = "x"\nport = 1\n[log]\nlevel = "loud"\nformat = 3\n[logs]\nlevel = "info"\n', "utf-8"
    )

    found = mistakes({"REDRIVE_BROKER": "orders.db", "REDRIVE_LOG_LEVL": "info"})

    assert found == (
        "redrive.toml: brokr: unknown key; did you mean broker?",
        "redrive.toml: port: unknown key",
        "redrive.toml: logs.level: unknown key; did you mean log.level?",
        "REDRIVE_LOG_LEVL: unknown variable; did you mean REDRIVE_LOG_LEVEL?",
        "redrive.toml: log.level: expected one of debug, info, warning, error, got 'loud'",
        "redrive.toml: log.format: expected one of auto, json, text, got 3",
        "REDRIVE_BROKER: expected a URL such as sqlite:///redrive.db, got 'orders.db'",
    )


def test_a_table_where_a_value_belongs_is_a_mistake(folder: Path) -> None:
    (folder / "redrive.toml").write_text('[broker]\nurl = "sqlite:///x.db"\n', "utf-8")

    (found,) = mistakes({})

    assert found.startswith("redrive.toml: broker: expected a URL")


def test_a_variable_of_somebody_else_is_left_alone() -> None:
    assert load_settings({"REDRIVE_TEST_SERVERS": "1"}) == Settings()


def test_a_named_file_must_exist_and_a_broken_one_says_where(folder: Path) -> None:
    (folder / "redrive.toml").write_text("broker = \n", "utf-8")

    assert mistakes({"REDRIVE_CONFIG": "absent.toml"}) == (
        "REDRIVE_CONFIG: expected the path of a settings file, no file is at 'absent.toml'",
    )
    (found,) = mistakes({})
    assert found.startswith("redrive.toml: not TOML: ")
    assert "line 1" in found


def test_a_password_in_a_wrong_url_is_not_shown() -> None:
    (found,) = mistakes({"REDRIVE_BROKER": "redis:shop:s3cret@cache"})

    assert "s3cret" not in found


@pytest.mark.parametrize("store", ["sqlite:///shop.db", "sqlite:///./shop.db", "sqlite:///sub/../shop.db"])
def test_one_file_for_broker_and_store_is_a_mistake_however_it_is_written(folder: Path, store: str) -> None:
    (folder / "sub").mkdir()

    assert mistakes({"REDRIVE_BROKER": "sqlite:///shop.db", "REDRIVE_STORE": store}) == (
        "store: expected another file than the broker's, got shop.db for both",
    )


def test_two_files_of_one_name_are_two() -> None:
    check_apart("sqlite:///a/shop.db", "sqlite:///b/shop.db")
    check_apart("redis://localhost", "sqlite:///shop.db")
