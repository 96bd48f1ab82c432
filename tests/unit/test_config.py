import re
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.config import (
    AlertSettings,
    BrokerSettings,
    RetentionSettings,
    ServiceSettings,
    Settings,
    check_apart,
    load_settings,
    read_settings,
)
from redrive.config.origins import line_of, shown
from redrive.core.alert_rules import AlertRules, Pace
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
        brokers=(BrokerSettings(url="sqlite:///redrive.db"),),
        store="sqlite:///letters.db",
        log_level="info",
        log_format="auto",
        color=True,
        service=ServiceSettings(host="127.0.0.1", port=8800, collect=True, redrive=True),
    )


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(folder: Path) -> None:
    (folder / "redrive.toml").write_text('broker = "sqlite:///file.db"\n[log]\nlevel = "debug"\n', "utf-8")

    settings = load_settings({"REDRIVE_BROKER": "sqlite:///env.db"})

    assert settings == Settings(brokers=(BrokerSettings(url="sqlite:///env.db"),), log_level="debug")


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


# ------------------------------------------------------------------------------------------ several brokers

SEVERAL = """
store = "sqlite:///letters.db"

[brokers.orders]
url = "redis://shop:s3cret@cache-1:6379"
queues = ["orders", "payments"]
dlqs = ["legacy-dlq=orders", "other-dlq"]
keep = true

[brokers.mail-2]
url = "sqlite:///mail.db"
"""

ORDERS = BrokerSettings(
    name="orders",
    url="redis://shop:s3cret@cache-1:6379",
    queues=("orders", "payments"),
    dlqs={"legacy-dlq": "orders", "other-dlq": None},
    keep=True,
)
MAIL = BrokerSettings(name="mail-2", url="sqlite:///mail.db")


def test_several_brokers_have_their_names_and_what_is_collected_from_each(folder: Path) -> None:
    (folder / "redrive.toml").write_text(SEVERAL, "utf-8")

    assert load_settings({}).brokers == (ORDERS, MAIL)


def test_a_url_alone_is_enough_for_a_broker(folder: Path) -> None:
    (folder / "redrive.toml").write_text('[brokers]\na = "redis://a"\nb = "redis://b"\n', "utf-8")

    assert [(one.name, one.url) for one in load_settings({}).brokers] == [("a", "redis://a"), ("b", "redis://b")]


def test_a_variable_says_what_a_table_does_not_or_says_otherwise(folder: Path) -> None:
    (folder / "redrive.toml").write_text("[brokers.mail-2]\nkeep = true\n", "utf-8")

    environ = {
        "REDRIVE_BROKERS_MAIL_2_URL": "redis://u:s3cret@cache",
        "REDRIVE_BROKERS_MAIL_2_QUEUES": "mail, sms",
        "REDRIVE_BROKERS_MAIL_2_DLQS": "old=mail,older",
        "REDRIVE_BROKERS_MAIL_2_KEEP": "no",
    }

    (found,) = load_settings(environ).brokers
    assert found == BrokerSettings(
        name="mail-2", url="redis://u:s3cret@cache", queues=("mail", "sms"), dlqs={"old": "mail", "older": None}
    )


@pytest.mark.parametrize("which", ["orders", "redis://shop:s3cret@cache-1:6379"])
def test_one_of_several_is_chosen_by_its_name_or_its_url_and_keeps_its_name(folder: Path, which: str) -> None:
    (folder / "redrive.toml").write_text(SEVERAL, "utf-8")

    assert load_settings({"REDRIVE_BROKER": which}).broker == ORDERS
    assert load_settings({}, flags={"broker": which}).brokers == (ORDERS,)


def test_a_url_that_no_table_has_is_a_broker_of_its_own(folder: Path) -> None:
    (folder / "redrive.toml").write_text(SEVERAL, "utf-8")

    assert load_settings({}, flags={"broker": "redis://elsewhere"}).broker == BrokerSettings(url="redis://elsewhere")


def test_who_needs_one_broker_of_several_must_say_which(folder: Path) -> None:
    (folder / "redrive.toml").write_text(SEVERAL, "utf-8")

    with pytest.raises(ConfigError, match="several, say which: orders, mail-2"):
        _ = load_settings({}).broker


def test_what_is_collected_of_the_only_broker_needs_no_table(folder: Path) -> None:
    (folder / "redrive.toml").write_text(
        '[collect]\nqueues = ["orders"]\ndlqs = { "a=b" = "orders" }\nkeep = true\n', "utf-8"
    )

    found = load_settings({"REDRIVE_BROKER": "redis://here", "REDRIVE_COLLECT_QUEUES": "mail"}).broker

    assert found == BrokerSettings(url="redis://here", queues=("mail",), dlqs={"a=b": "orders"}, keep=True)


def test_keep_for_all_is_a_default_in_the_file_and_an_order_as_a_flag(folder: Path) -> None:
    (folder / "redrive.toml").write_text(
        '[collect]\nkeep = true\n[brokers.a]\nurl = "redis://a"\n[brokers.b]\nurl = "redis://b"\nkeep = false\n',
        "utf-8",
    )

    assert [one.keep for one in load_settings({}).brokers] == [True, False]
    assert [one.keep for one in load_settings({}, flags={"collect.keep": True}).brokers] == [True, True]


def test_every_mistake_about_brokers_is_told_at_once(folder: Path) -> None:
    (folder / "redrive.toml").write_text(
        """
broker = "redis://lone"
store = "sqlite:///mail.db"
[collect]
queues = ["orders"]
[brokers.a]
url = "redis://a"
quues = ["x"]
keep = "yes"
[brokers.A]
url = "redis://b"
[brokers.twin]
url = "redis://a"
[brokers.mail]
url = "sqlite:///./mail.db"
queues = ["x", "x"]
[brokers."no spaces"]
url = "redis://c"
[brokers.nowhere]
dlqs = [1]
""",
        "utf-8",
    )

    assert mistakes({}) == (
        "redrive.toml: brokers.A: expected a name of its own, got one like 'a'",
        "redrive.toml: brokers.no spaces: expected a name of letters, digits, - and _, got 'no spaces'",
        "redrive.toml: brokers.a.quues: unknown key; did you mean brokers.a.queues?",
        "redrive.toml: brokers.a.keep: expected true or false, got 'yes'",
        "redrive.toml: brokers.mail.queues: expected a list of names, each once, got ['x', 'x']",
        'redrive.toml: brokers.nowhere.dlqs: expected a list of DLQs such as "legacy-dlq" or "legacy-dlq=orders", each once, got [1]',  # noqa: E501
        "redrive.toml: brokers.nowhere.url: expected a URL such as sqlite:///redrive.db, got none",
        "brokers.twin.url: the same broker as brokers.a: one has one name",
        "redrive.toml: broker: expected none beside [brokers.…]; give it a table and a name of its own",
        "redrive.toml: collect.queues: of which broker? say it in [brokers.<name>], or name a broker",
        "store: expected another file than the broker's, got mail.db for both",
    )


def test_a_broker_that_no_table_has_is_told_with_those_there_are(folder: Path) -> None:
    (folder / "redrive.toml").write_text(SEVERAL, "utf-8")

    assert mistakes({"REDRIVE_BROKER": "order"}) == (
        "REDRIVE_BROKER: expected a URL such as sqlite:///redrive.db, or one of orders, mail-2, got 'order'",
    )


# ------------------------------------------------------------------------------------------ the service's own


@pytest.mark.parametrize("address", ["https://traces.example/", "javascript:{trace_id}", "traces/{trace_id}"])
def test_the_address_of_traces_is_a_page_with_a_place_for_the_id(address: str) -> None:
    (said,) = mistakes({"REDRIVE_SERVICE_TRACE_URL": address})

    assert said.startswith("REDRIVE_SERVICE_TRACE_URL: expected a URL with {trace_id} in it, such as https://")
    assert said.endswith(f", got {address!r}")


def test_the_service_is_set_by_file_variables_and_flags(folder: Path) -> None:
    (folder / "redrive.toml").write_text(
        '[service]\nport = 9000\nbody_limit = "2MB"\nredrive = false\n[metrics]\nlabel = "task_type"\n', "utf-8"
    )

    found = load_settings(
        {"REDRIVE_SERVICE_PORT": "9001", "REDRIVE_SERVICE_RATE_LIMIT": "2.5", "REDRIVE_SERVICE_COLLECT": "off"},
        flags={"service.port": 9002, "service.host": None},
    )

    assert found.service == ServiceSettings(
        port=9002, body_limit=2_000_000, redrive=False, rate_limit=2.5, collect=False
    )
    assert found.metrics_label == "task_type"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("REDRIVE_SERVICE_PORT", "many"),
        ("REDRIVE_SERVICE_PORT", "65536"),
        ("REDRIVE_SERVICE_COLLECT", "maybe"),
        ("REDRIVE_SERVICE_RATE_LIMIT", "0"),
        ("REDRIVE_SERVICE_RATE_LIMIT", "inf"),
        ("REDRIVE_SERVICE_BODY_LIMIT", "8 apples"),
        ("REDRIVE_SERVICE_BODY_LIMIT", "0"),
        ("REDRIVE_COLLECT_DLQS", "=orders"),
    ],
)
def test_a_variable_that_is_not_what_it_should_be_is_a_mistake_with_its_name(variable: str, value: str) -> None:
    (found,) = mistakes({variable: value})

    assert found.startswith(f"{variable}: expected ")
    assert repr(value) in found


def test_rules_of_retention_are_read_and_their_mistakes_told(folder: Path) -> None:
    file = folder / "redrive.toml"
    file.write_text(
        '[[retention]]\nolder_than = "90d"\nstate = "resolved"\n[[retention]]\nolder_than = 3600\nqueue = "orders"\n',
        "utf-8",
    )
    assert load_settings({}).retention == (
        RetentionSettings(older_than=timedelta(days=90), state="resolved"),
        RetentionSettings(older_than=timedelta(hours=1), queue="orders"),
    )

    file.write_text('[[retention]]\nstate = "done"\n[[retention]]\nolder_than = "soon"\nqueu = "x"\n', "utf-8")
    assert [found.split(":")[1] for found in mistakes({})] == [
        " retention[1].state",
        " retention[1].older_than",
        " retention[2].older_than",
        " retention[2].queu",
    ]

    file.write_text("retention = 3\n", "utf-8")
    assert len(mistakes({})) == 1


def test_a_variable_of_another_program_is_not_taken_for_a_slip_of_the_pen() -> None:
    assert load_settings({"REDRIVE_TOKEN": "x", "REDRIVE_HOME": "z"}) == Settings()


def test_the_examples_of_the_documents_are_right(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
    brokers, alerts = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (folder / "redrive.toml").write_text(brokers, "utf-8")

    found = load_settings({})

    assert [(one.name, one.keep) for one in found.brokers] == [("orders", False), ("mail", True)]
    assert len(found.retention) == 1
    (folder / "redrive.toml").write_text(alerts, "utf-8")
    assert load_settings({}).alerts.labels == {"severity": "critical", "team": "shop"}


# ------------------------------------------------------------------------------------------ where values come from


def test_every_value_has_its_origin_and_no_secret(folder: Path) -> None:
    (folder / "redrive.toml").write_text(SEVERAL + '\n[service]\n# here\nport = 1\n[[retention]]\nolder_than = "1d"\n')

    reading = read_settings({"REDRIVE_LOG_LEVEL": "debug"}, flags={"store": "sqlite:///x.db", "collect.keep": True})
    found = {one.key: (one.value, one.origin) for one in shown(reading)}

    assert found["store"] == ("sqlite:///x.db", "--store")
    assert found["log.level"] == ("debug", "REDRIVE_LOG_LEVEL")
    assert found["log.format"] == ("auto", "default")
    assert found["service.port"] == (1, "redrive.toml:15")
    assert found["brokers.orders.url"] == ("redis://shop:***@cache-1:6379", "redrive.toml:5")
    assert found["brokers.orders.queues"] == (("orders", "payments"), "redrive.toml:6")
    assert found["brokers.mail-2.queues"] == (None, "default")
    assert found["brokers.mail-2.keep"] == (True, "--keep")
    assert found["retention[1].older_than"] == (timedelta(days=1), "redrive.toml:17")
    assert "broker" not in found


def test_the_only_broker_has_its_origin_too() -> None:
    reading = read_settings({"REDRIVE_BROKER": "redis://u:s3cret@here", "REDRIVE_COLLECT_QUEUES": "a,b"})

    found = {one.key: (one.value, one.origin) for one in shown(reading)}

    assert found["broker"] == ("redis://u:***@here", "REDRIVE_BROKER")
    assert found["collect.queues"] == (("a", "b"), "REDRIVE_COLLECT_QUEUES")


@pytest.mark.parametrize(
    ("key", "line"),
    [("a", 2), ("b", 4), ("t.c", 9), ("t.d", 12), ("t.u.v.w", 14), ("rows[2].x", 18), ("absent", None)],
)
def test_a_key_is_found_on_the_line_where_its_statement_begins(key: str, line: int | None) -> None:
    text = '''# first
a = 1

b = """
c = 2
[x]
"""
[t]
c = [
  1,
]
"d" = 2 # last

u.v.w = 1
[[rows]]
x = 1
[[rows]]
x = 2
'''
    assert line_of(key, text) == line


def test_alertmanagers_are_one_url_or_several_and_labels_a_table_or_a_list(folder: Path) -> None:
    (folder / "redrive.toml").write_text(
        '[alerts]\nalertmanager = "http://am:9093"\nlabels = { severity = "critical" }\n', "utf-8"
    )
    told = {"REDRIVE_ALERTS_ALERTMANAGER": "http://a:1, http://b:2", "REDRIVE_ALERTS_LABELS": "team=shop,a=b=c"}

    assert load_settings({}).alerts == AlertSettings(alertmanager=("http://am:9093",), labels={"severity": "critical"})
    assert load_settings(told).alerts == AlertSettings(
        alertmanager=("http://a:1", "http://b:2"), labels={"team": "shop", "a": "b=c"}
    )


@pytest.mark.parametrize(
    "said",
    [
        {"REDRIVE_ALERTS_ALERTMANAGER": "am:9093"},
        {"REDRIVE_ALERTS_ALERTMANAGER": "http://a,http://a"},
        {"REDRIVE_ALERTS_LABELS": "severity"},
        {"REDRIVE_ALERTS_LABELS": "__name__=x"},
        {"REDRIVE_ALERTS_LABELS": "a b=c"},
        {"REDRIVE_ALERTS_LABELS": "a="},
        {"REDRIVE_SERVICE_PUBLIC_URL": "redrive.example.org"},
        {"REDRIVE_ALERTS_GROWTH": "ten in 5m"},
        {"REDRIVE_ALERTS_GROWTH": "0 in 5m"},
        {"REDRIVE_ALERTS_THRESHOLD": "100"},
        {"REDRIVE_ALERTS_SIZE": "0"},
        {"REDRIVE_ALERTS_SIZE": "many"},
        {"REDRIVE_ALERTS_AGE": "30s"},
        {"REDRIVE_ALERTS_REPEAT_EVERY": "off"},
        {"REDRIVE_ALERTS_RELAPSE": "maybe"},
    ],
)
def test_what_alerts_cannot_be_sent_with_is_a_mistake(said: dict[str, str]) -> None:
    (mistake,) = mistakes(said)

    assert mistake.startswith(f"{next(iter(said))}: expected")


def test_the_password_of_an_alertmanager_is_not_shown() -> None:
    found = shown(read_settings({"REDRIVE_ALERTS_ALERTMANAGER": "http://ann:s3cret@am:9093"}))

    (one,) = [one for one in found if one.key == "alerts.alertmanager"]
    assert (one.value, one.origin) == (("http://ann:***@am:9093",), "REDRIVE_ALERTS_ALERTMANAGER")


def test_rules_of_alerts_are_set_or_turned_off_in_the_file_and_by_variables(folder: Path) -> None:
    (folder / "redrive.toml").write_text(
        '[alerts]\nwebhook = "https://chat.example/s3cret"\ngrowth = "5 in 1m"\nthreshold = "off"\nsize = 7\n'
        'age = "2h"\nrepeat_every = "never"\nrelapse = false\n',
        "utf-8",
    )
    told = {"REDRIVE_ALERTS_SIZE": "off", "REDRIVE_ALERTS_AGE": "off", "REDRIVE_ALERTS_THRESHOLD": "50 in 90m"}
    told |= {"REDRIVE_ALERTS_REPEAT_EVERY": "1h", "REDRIVE_ALERTS_NEW_INCIDENT": "no"}

    one, other = load_settings({}).alerts, load_settings(told).alerts

    assert one.rules == AlertRules(
        relapse=False, growth=Pace(5, timedelta(minutes=1)), threshold=None, size=7, age=timedelta(hours=2)
    )
    assert (one.webhook, one.repeat_every) == (("https://chat.example/s3cret",), None)
    assert other.rules == AlertRules(
        new_incident=False,
        relapse=False,
        growth=Pace(5, timedelta(minutes=1)),
        threshold=Pace(50, timedelta(minutes=90)),
        size=None,
        age=None,
    )
    assert other.repeat_every == timedelta(hours=1)
    assert AlertSettings().rules == AlertRules()


def test_of_a_webhook_only_its_host_is_shown_and_in_a_mistake_nothing() -> None:
    said = {
        "REDRIVE_ALERTS_WEBHOOK": "https://chat.example:8443/T0/s3cret?key=s3cret,https://ann:s3cret@chat.example/x"
    }
    found = {one.key: one.value for one in shown(read_settings(said))}

    assert found["alerts.webhook"] == ("https://chat.example:8443/***", "***")
    assert found["alerts.growth"] == "10 in 5m"
    (mistake,) = mistakes({"REDRIVE_ALERTS_WEBHOOK": "chat.example/s3cret"})
    assert mistake.startswith("REDRIVE_ALERTS_WEBHOOK: expected URLs")
    assert "s3cret" not in mistake


def test_every_mistake_about_alerts_is_told_at_once() -> None:
    said = {"ALERTS_GROWTH": "fast", "ALERTS_SIZE": "-1", "ALERTS_AGE": "old", "ALERTS_WEBHOOK": "x"}

    assert len(mistakes({f"REDRIVE_{name}": value for name, value in said.items()})) == len(said)
