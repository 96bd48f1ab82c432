import asyncio
import json
import resource
from pathlib import Path
from typing import Any

import pytest

from redrive.core.errors import ConfigError
from redrive.gateway import LLMRequest, Post, Reply
from redrive.gateway.batch_file import BatchFile, Tally
from redrive.gateway.models_file import read_models_file
from tests.unit.gateway.stage import Provider, answer, on_stage, refusal


def test_models_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('[models.fast]\nbase_url = "http://host/v1"\nmodel_name = "m"\nconcurrency = 3\ndeadline = "5m"\n')

    (model,) = read_models_file(path).values()

    assert (model.model_name, model.concurrency) == ("m", 3)


def test_every_mistake_in_a_file_of_models_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(
        '[models]\nodd = 1\n[models.a]\nbase_url = "http://host"\n[models.b]\nbase_url = "host"\nmodel_name = "m"\n'
        'batch_size = 0\n[models.c]\nbase_url = "http://host"\nmodel_name = "m"\nspeed = "high"\n'
    )
    with pytest.raises(ConfigError) as caught:
        read_models_file(path)

    named = [mistake.partition(":")[0] for mistake in caught.value.mistakes]
    assert named == ["models.odd", "models.a.model_name", "models.b.base_url", "models.b.batch_size", "models.c.speed"]


def test_a_setting_that_is_not_known_hides_no_other_mistake(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(
        '[models.a]\nbase_url = "ftp://host"\nconcurrency = 0\nspeed = "high"\n'
        '[models."b c"]\nbase_url = "http://host"\nmodel_name = "m"\napi_key_env = "NO_SUCH_VARIABLE"\n'
    )
    with pytest.raises(ConfigError) as caught:
        read_models_file(path)

    named = [mistake.partition(":")[0] for mistake in caught.value.mistakes]
    assert named == [
        *("models.a.speed", "models.a.model_name", "models.a.base_url", "models.a.concurrency"),
        *("models", "models.b c.api_key_env"),
    ]


@pytest.mark.parametrize("text", ["", "[models]", "models = 1", "this is no TOML"])
def test_a_file_without_models_is_a_mistake(text: str, tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(ConfigError):
        read_models_file(tmp_path / "models.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_models_file(tmp_path / "none.toml")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


def asked(name: str, **more: Any) -> dict[str, Any]:
    return {"request_id": name, "messages": [{"role": "user", "content": name}], **more}


async def test_a_file_is_answered_and_only_what_failed_is_sent_again(tmp_path: Path) -> None:
    healed = False

    def moody(post: Post) -> Reply:
        said = json.loads(post.body)["messages"][-1]["content"]
        return answer(f"re: {said}") if healed or said != "r2" else refusal(422, "odd")

    requests = write(tmp_path / "requests.jsonl", asked("r1", temperature=0.5), "\n", asked("r2"), asked("r3"))
    answers = tmp_path / "answers.jsonl"
    async with on_stage(Provider(always=moody)) as stage:
        batch = BatchFile(requests, answers, model="fast")
        first = await batch.run(stage.gateway)
        assert (first.total, first.before, first.answered, first.failed) == (3, 0, 2, 1)
        assert stage.provider.bodies[0]["temperature"] == 0.5
        with answers.open("a") as file:
            file.write('{"request_id": "r3", "sta')  # as a crash leaves it

        healed = True
        second = await batch.run(stage.gateway)
        assert (second.total, second.before, second.answered, second.failed) == (3, 2, 1, 0)
        third = await batch.run(stage.gateway)
        assert (third.before, third.answered) == (3, 0)
        assert len(stage.provider.posts) == 4

    found = {row["request_id"]: row for row in lines(answers)}
    assert len(lines(answers)) == len(found) == 3
    assert {row["text"] for row in found.values()} == {"re: r1", "re: r2", "re: r3"}


async def test_a_line_that_is_no_request_fails_by_itself(tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl", "junk\n", "[]\n", {"messages": []}, asked("r1"), {"custom_id": "c1"})
    async with on_stage(Provider()) as stage:
        tally = await BatchFile(requests, tmp_path / "answers.jsonl", model="fast").run(stage.gateway)

    assert (tally.answered, tally.failed) == (1, 4)
    failed = {row["request_id"] for row in lines(tmp_path / "answers.jsonl") if row["status"] == "failed"}
    assert failed == {"line-1", "line-2", "line-3", "c1"}


async def test_more_requests_than_fit_at_once_are_all_answered(tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl", *(asked(str(n)) for n in range(2500)))
    seen: list[int] = []

    def note(tally: Tally) -> None:
        seen.append(tally.answered)

    async with on_stage(Provider(), queue_size=100) as stage:
        tally = await BatchFile(requests, tmp_path / "answers.jsonl", model="fast").run(stage.gateway, progress=note)

    assert tally.answered == 2500
    assert seen[-1] == 2500
    assert len({row["request_id"] for row in lines(tmp_path / "answers.jsonl")}) == 2500


async def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    async with on_stage(Provider()) as stage:
        with pytest.raises(ConfigError, match="cannot be read"):
            await BatchFile(tmp_path / "none", tmp_path / "answers.jsonl", model="fast").run(stage.gateway)


@pytest.mark.parametrize(
    "held", ['{"request_id": "r1", "messages": []}\n', "name,age\n", '{"a": 1}', '{"request_id": "r1"}\n', "\n"]
)
async def test_a_file_that_holds_no_answers_is_left_as_it_is(held: str, tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl", asked("r1"))
    (tmp_path / "other").write_text(held)
    async with on_stage(Provider()) as stage:
        for output in ("other", "requests.jsonl"):
            with pytest.raises(ConfigError, match="line 1 is no answer"):
                await BatchFile(requests, tmp_path / output, model="fast").run(stage.gateway)

        assert stage.provider.posts == []
    assert (tmp_path / "other").read_text() == held
    assert lines(requests) == [asked("r1")]
    assert files(tmp_path) == {"other", "requests.jsonl"}


async def test_two_requests_with_one_id_are_a_mistake_of_the_file(tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl", asked("r1"), asked("r2"), "\n", asked("r1", temperature=1))
    async with on_stage(Provider()) as stage:
        with pytest.raises(ConfigError, match="line 4: expected an id of its own, got 'r1'"):
            await BatchFile(requests, tmp_path / "answers.jsonl", model="fast").run(stage.gateway)

        assert stage.provider.posts == []


async def test_answers_that_cannot_be_written_are_a_mistake(tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl", asked("r1"))
    async with on_stage(Provider()) as stage:
        with pytest.raises(ConfigError, match="cannot be written: No such file"):
            await BatchFile(requests, tmp_path / "none" / "answers.jsonl", model="fast").run(stage.gateway)
        with pytest.raises(ConfigError, match="expected a file"):
            await BatchFile(requests, tmp_path, model="fast").run(stage.gateway)
        with pytest.raises(ConfigError, match="expected a file"):
            await BatchFile(tmp_path, tmp_path / "answers.jsonl", model="fast").run(stage.gateway)


async def test_a_disk_that_is_full_is_told_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl", *(asked(f"r{n}") for n in range(5)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with on_stage(Provider(), concurrency=1) as stage:
        batch = BatchFile(requests, tmp_path / "answers.jsonl", model="fast")
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, before[1]))
        try:
            with pytest.raises(ConfigError, match="cannot be written: File too large"):
                await batch.run(stage.gateway)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        again = await batch.run(stage.gateway)
        assert 0 < again.before < 5
        assert again.before + again.answered == 5

    assert {row["request_id"] for row in lines(tmp_path / "answers.jsonl")} == {f"r{n}" for n in range(5)}


async def test_how_far_a_file_is_counts_all_of_it(tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl", asked("r1"), asked("r2"))
    answers = write(tmp_path / "answers.jsonl", {"request_id": "r1", "status": "answered"})
    with answers.open("a") as file:
        file.write('{"request_id": "of another file", "status": "answered"}\n')
    seen: list[tuple[int, int]] = []
    async with on_stage(Provider()) as stage:
        await BatchFile(requests, answers, model="fast").run(
            stage.gateway, progress=lambda tally: seen.append((tally.total, tally.before))
        )

    assert {*seen} == {(2, 1)}


async def test_a_run_that_is_cancelled_keeps_its_answers(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def slow(post: Post) -> Reply:
        if b"r2" in post.body:
            arrived.set()
            await asyncio.Event().wait()
        return answer()

    requests = write(tmp_path / "requests.jsonl", asked("r1"), asked("r2"))
    async with on_stage(Provider(always=slow)) as stage:
        running = asyncio.create_task(BatchFile(requests, tmp_path / "a.jsonl", model="fast").run(stage.gateway))
        await arrived.wait()
        await stage.settle()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert [row["request_id"] for row in lines(tmp_path / "a.jsonl")] == ["r1"]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    requests.write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    go = asyncio.Event()

    async def slowly(_: Post) -> Reply:
        await go.wait()
        return answer()

    async with on_stage(Provider(always=slowly)) as stage:
        first = asyncio.create_task(BatchFile(requests, answers, model="fast").run(stage.gateway))
        while not stage.provider.posts:  # noqa: ASYNC110 - read by a thread
            await asyncio.sleep(0.001)
        with pytest.raises(ConfigError, match=r"answers.jsonl: another run writes this file"):
            await BatchFile(requests, answers, model="fast").run(stage.gateway)
        go.set()

        assert (await first).answered == 1
        assert (await BatchFile(requests, answers, model="fast").run(stage.gateway)).before == 1
    assert names_in(tmp_path) == ["answers.jsonl", "requests.jsonl"]


async def test_lines_without_an_id_are_not_taken_for_those_of_other_files(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", {"messages": [{"role": "user", "content": "one"}]})
    other = write(tmp_path / "other.jsonl", {"messages": [{"role": "user", "content": "other"}]})
    answers = [tmp_path / "one.answers", tmp_path / "other.answers"]
    async with on_stage(Provider(always=refusal(500)), policy=0) as stage:
        for requests, output in zip((one, other), answers, strict=True):
            running = asyncio.create_task(BatchFile(requests, output, model="fast").run(stage.gateway))
            await stage.pass_time(1)
            await running

    names = [LLMRequest.from_json(letter.payload or b"").request_id for letter in stage.dlq.events]
    assert len({*names}) == 2
    assert all(name.startswith("line-1-") for name in names)
    assert [line["request_id"] for path in answers for line in lines(path)] == ["line-1", "line-1"]


async def test_a_lock_that_a_dead_run_has_left_keeps_nobody_out(tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    requests.write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    (tmp_path / "answers.jsonl.lock").touch()

    async with on_stage(Provider()) as stage:
        assert (await BatchFile(requests, answers, model="fast").run(stage.gateway)).answered == 1
