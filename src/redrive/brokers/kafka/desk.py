"""What becomes of what is in hand: outcomes are carried out, all of a call in one step."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from redrive.brokers.kafka.book import Change, Row, Rows
from redrive.brokers.kafka.clerk import Step
from redrive.brokers.kafka.entry import Entry
from redrive.brokers.kafka.hands import Hands, by_share
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.transactions import Refused
from redrive.brokers.kafka.window import Window
from redrive.core.delivery import Delivery
from redrive.core.outcome import DONE, LOST, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.ports import Options

if TYPE_CHECKING:
    from redrive.brokers.kafka.membership import Membership

_TOKEN: Final = 12  # where it stands in a Delivery: read by place, at a third of the cost

Answers: TypeAlias = dict[Entry, Settled]


class Desk:
    """Settles for one membership. Plain successes by the thread that reads, everything else by that of `calls`."""

    def __init__(self, office: Office, membership: "Membership", hands: Hands) -> None:
        self._office = office
        self._membership = membership
        self._hands = hands
        self._clerk = membership.clerk
        self._notes = membership.notes
        self._state = membership.state

    def settle(self, items: Sequence[Settlement | Delivery], options: Options) -> list[Settled]:
        """Carry out outcomes; one answer each."""
        self._notes.resolve()
        if {*map(type, items)} == {Delivery}:
            entries = [item[_TOKEN] for item in items]  # type: ignore[misc]  # they are all deliveries
            if self._hands.in_hand.issuperset(entries) and len({*entries}) == len(entries) and not options.moves:
                return self._settle_plain(entries)
        return self._settle_others(items, options)

    def _settle_plain(self, entries: Sequence[Entry]) -> list[Settled]:
        """Successes with nothing to write, all of them in hand: one plain commit."""
        self._notes.commit(Window.finish, entries)
        with self._state:
            for entry in entries:
                entry.answer = DONE
            self._hands.let_go(entries)
        return [DONE] * len(entries)

    def _settle_others(self, items: Sequence[Settlement | Delivery], options: Options) -> list[Settled]:
        answers: dict[Any, Settled] = {}  # by token
        plain: list[Entry] = []
        steps: list[Step] = []
        tokens = [item.token if isinstance(item, Delivery) else item.delivery.token for item in items]
        for token, item in zip(tokens, items, strict=True):
            if token in answers:
                continue
            answers[token] = LOST
            if token not in self._hands.in_hand:
                answers[token] = self._answer_late(as_settlement(item), options)
            elif isinstance(item, Delivery):
                plain.append(token)
            elif why := self._clerk.mistake(item, options.dlq):
                answers[token] = Settled(SettleStatus.REFUSED, why)
            else:
                steps.append(self._clerk.step(item, token, options.dlq))
        answers |= self._carry_out(plain, steps, options)
        return [answers[token] for token in tokens] if len(answers) == len(tokens) else _each_once(tokens, answers)

    def _answer_late(self, item: Settlement, options: Options) -> Settled:
        """What is not in hand: settled before, a suspect, or lost."""
        token = item.delivery.token
        before = self._hands.answer(token)
        if before is not None:
            return before._replace(status=SettleStatus.REPEATED)
        return self._settle_suspect(item, options) if isinstance(token, str) else LOST

    def _settle_suspect(self, item: Settlement, options: Options) -> Settled:
        why = self._clerk.mistake(item, options.dlq)
        if why:
            return Settled(SettleStatus.REFUSED, why)
        answer = self._membership.suspects.settle(item, options.dlq)
        if answer.status is SettleStatus.DONE:
            self._hands.remember(item.delivery.token, answer)
        return answer

    def _carry_out(self, plain: Sequence[Entry], steps: Sequence[Step], options: Options) -> Answers:
        """All of them in one step; if the broker refuses it, in halves. One alone is tried in a smaller form too.

        `plain` are successes with nothing to write.
        """
        if not plain and not steps:
            return {}
        try:
            return self._move_out(plain, steps) if options.moves else self._write(plain, steps)
        except Refused as error:
            if not steps:
                return dict.fromkeys(plain, Settled(SettleStatus.REFUSED, str(error)))
            if not plain and len(steps) == 1:
                return self._carry_out_smaller(steps[0], options, why=str(error))
        half = 0 if plain else len(steps) // 2
        return self._carry_out(plain, steps[:half], options) | self._carry_out((), steps[half:], options)

    def _carry_out_smaller(self, step: Step, options: Options, *, why: str) -> Answers:
        if step.item.letter is None or step.smaller:
            return {step.entry: Settled(SettleStatus.REFUSED, why)}
        return self._carry_out((), [self._clerk.step(step.item, step.entry, options.dlq, smaller=True)], options)

    def _done(self, plain: Sequence[Entry], steps: Sequence[Step]) -> Answers:
        """They have left our hands."""
        answers: Answers = dict.fromkeys(plain, DONE)
        for step in steps:
            answers[step.entry] = DONE._replace(due_at=step.due_at) if step.due_at else DONE
        for entry, answer in answers.items():
            entry.answer = answer
        self._hands.let_go([*answers])
        return answers

    def _write(self, plain: Sequence[Entry], steps: Sequence[Step]) -> Answers:
        """Carry out, all or none. A success with nothing to write is a plain commit."""
        answers: Answers = {}
        entries = [*plain, *(step.entry for step in steps)]

        def done() -> None:
            answers.update(self._done(plain, steps))

        records = self._clerk.all_records(steps)
        if records:
            self._notes.carry_out(entries, records, then=done)
        else:
            self._notes.commit(Window.finish, entries)
            with self._state:
                done()
        return answers

    # --------------------------------------------------------------------------- collecting from a DLQ

    def without_gone(self, chosen: Sequence[Entry]) -> list[Entry]:
        """Leave out what was redriven or removed from a DLQ by hand."""
        gone = self._office.ledger.refresh()
        left = [entry for entry in chosen if gone_key(entry) in gone]
        if left:
            self._notes.commit(Window.finish, left)
            with self._state:
                self._hands.let_go(left)
        return [entry for entry in chosen if entry not in left]

    def _move_out(self, plain: Sequence[Entry], steps: Sequence[Step]) -> Answers:
        """Outcomes of a subscription that moves: what is acked leaves the queue for everybody."""
        lost: list[Entry] = []
        mark = self._membership.identity.encode()
        entries = [*plain, *(step.entry for step in steps)]
        found = by_share(entries)
        proofs = self._notes.proofs(found)
        later = {step.entry for step in steps if step.due_at is not None}

        def decide(rows: Rows) -> Change | None:
            lost[:] = [entry for entry in entries if rows.get(gone_key(entry), Row(mark)).value != mark]
            leaving = {gone_key(entry): Row(mark) for entry in entries if entry not in lost and entry not in later}
            if leaving and leaving.keys() <= rows.keys():  # a commit without an answer, which went through
                return None
            kept = [step for step in steps if step.entry not in lost]
            with self._state:
                commits = self._notes.commits(self._notes.after(Window.finish, found))
            return Change(leaving, self._clerk.all_records(kept), self._notes.offsets(commits, proofs))

        with self._notes.transaction():
            self._office.ledger.change(decide)
            self._notes.apply(Window.finish, found)
            with self._state:
                self._hands.let_go(lost)
                kept = [step for step in steps if step.entry not in lost]
                done = self._done([entry for entry in plain if entry not in lost], kept)
        return done | dict.fromkeys(lost, LOST)


def _each_once(tokens: Sequence[Entry | str], answers: Mapping[Any, Settled]) -> list[Settled]:
    """Answers to settlements of which some are there twice: the second of a kind changes nothing."""
    told: set[Entry | str] = set()
    found = []
    for token in tokens:
        answer = answers[token]
        again = token in told and answer.status is SettleStatus.DONE
        found.append(answer._replace(status=SettleStatus.REPEATED) if again else answer)
        told.add(token)
    return found


def gone_key(entry: Entry) -> str:
    """Under which key the ledger says that an entry has left its DLQ."""
    return f"gone:{entry.message.id}"
