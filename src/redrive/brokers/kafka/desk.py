"""What becomes of what is in hand: outcomes are carried out, all of a call in one step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from redrive.brokers.kafka.book import Change, Row, Rows
from redrive.brokers.kafka.clerk import Step
from redrive.brokers.kafka.entry import Entry
from redrive.brokers.kafka.gone import GONE, begin_life
from redrive.brokers.kafka.handful import Found, Handful, Token, by_handful, by_row, joined, noted
from redrive.brokers.kafka.hands import Hands
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.steps import Steps, do_alone
from redrive.brokers.kafka.transactions import Refused
from redrive.brokers.kafka.window import Window
from redrive.core.delivery import Delivery
from redrive.core.outcome import DONE, LOST, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.ports import Options
from redrive.core.row import InRows

if TYPE_CHECKING:
    from redrive.brokers.kafka.membership import Membership

_TOKEN: Final = 12  # where it stands in a Delivery: read by place, at a third of the cost

Answers: TypeAlias = dict[Any, Settled]
"""By token."""


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
        return do_alone(self.settling(items, options), self._notes)

    def settling(self, items: Sequence[Settlement | Delivery], options: Options) -> Steps[list[Settled]]:
        """The same in steps: successes with nothing to write, all of them in hand, need one plain commit."""
        self._notes.resolve()
        if not options.moves:
            found = _found_in(items)
            if found and self._hands.hold_all(found):
                yield Window.finish, noted(found)
                with self._state:
                    self._hands.let_go(found)
                return [DONE] * len(items)
        return self._settle_others(items, options)

    def _settle_others(self, items: Sequence[Settlement | Delivery], options: Options) -> list[Settled]:
        if isinstance(items, InRows):
            return self._settle_rows(items, options)
        tokens = _tokens_of(items)
        if {*map(type, tokens)} == {tuple} and self._hands.hold_all(by_handful(tokens)):
            return self._settle_held(items, tokens, options, beside={})
        answers: Answers = {}
        plain: dict[Token, None] = {}
        steps: dict[Token, tuple[Settlement, Entry]] = {}
        for token, item in zip(tokens, items, strict=True):
            if token in steps or token in answers or token in plain:
                continue
            if isinstance(token, str) or not self._hands.hold(token):
                answers[token] = self._answer_late(as_settlement(item), options)
            elif isinstance(item, Delivery):
                plain[token] = None
            elif why := self._clerk.mistake(item, options.dlq):
                answers[token] = Settled(SettleStatus.REFUSED, why)
            else:
                steps[token] = item, token[0].entry(token[1])
        found = by_handful(plain) if plain else {}
        answers |= self._carry_out(found, self._clerk.steps(steps.values(), options.dlq), options)
        return _each_once(tokens, answers)

    def _settle_rows(self, items: InRows, options: Options) -> list[Settled]:
        """Rows that went well, and others beside them: all in hand, each there once, as nearly all are."""
        tokens, found = _tokens_of(items.others), None if options.moves else by_row(items.rows)
        if found is not None and {*map(type, tokens)} <= {tuple}:
            others = by_handful(tokens) if tokens else {}
            if self._hands.hold_all(joined(found, others)):
                return [DONE] * items.in_rows + self._settle_held(items.others, tokens, options, beside=found)
        return self._settle_others([*items], options)

    def _settle_held(
        self, items: Sequence[Settlement | Delivery], tokens: Sequence[Token], options: Options, *, beside: Found
    ) -> list[Settled]:
        """Outcomes of what is in hand, each there once; `beside` them are more successes with nothing to write."""
        others = [(index, item) for index, item in enumerate(items) if isinstance(item, Settlement)]
        plain = [token for token, item in zip(tokens, items, strict=True) if item.__class__ is Delivery]
        answers: Answers = {}
        wanted: list[tuple[Settlement, Entry]] = []
        for index, item in others:
            token = tokens[index]
            if why := self._clerk.mistake(item, options.dlq):
                answers[token] = Settled(SettleStatus.REFUSED, why)
            else:
                wanted.append((item, token[0].entry(token[1])))
        found = joined(beside, by_handful(plain)) if plain else beside
        answers |= self._carry_out(found, self._clerk.steps(wanted, options.dlq), options)
        if len(answers) > len(others):
            return [answers.get(token, DONE) for token in tokens]
        told = [DONE] * len(items)
        for index, _ in others:
            told[index] = answers[tokens[index]]
        return told

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

    def _carry_out(self, plain: Found, steps: Sequence[Step], options: Options) -> Answers:
        """All of them in one step; if the broker refuses it, in halves. One alone is tried in a smaller form too.

        `plain` are successes with nothing to write; of those, only what is not plainly done is answered.
        """
        if not plain and not steps:
            return {}
        try:
            return self._move_out(plain, steps) if options.moves else self._write(plain, steps)
        except Refused as error:
            if not steps:
                return dict.fromkeys(_tokens_in(plain), Settled(SettleStatus.REFUSED, str(error)))
            if not plain and len(steps) == 1:
                return self._carry_out_smaller(steps[0], options, why=str(error))
        half = 0 if plain else len(steps) // 2
        return self._carry_out(plain, steps[:half], options) | self._carry_out({}, steps[half:], options)

    def _carry_out_smaller(self, step: Step, options: Options, *, why: str) -> Answers:
        if step.item.letter is None or step.smaller:
            return {step.item.delivery.token: Settled(SettleStatus.REFUSED, why)}
        return self._carry_out({}, [self._clerk.step(step.item, step.entry, options.dlq, smaller=True)], options)

    def _write(self, plain: Found, steps: Sequence[Step]) -> Answers:
        """Carry out, all or none. A success with nothing to write is a plain commit."""
        answers = _answers_to(steps)
        found = joined(plain, by_handful(answers)) if answers else plain
        records = self._clerk.all_records(steps)
        if records:
            self._notes.carry_out(noted(found), records, then=lambda: self._hands.let_go(found, answers))
        else:
            self._notes.commit((Window.finish, noted(found)))
            with self._state:
                self._hands.let_go(found, answers)
        return answers

    # --------------------------------------------------------------------------- collecting from a DLQ

    def without_gone(self, chosen: Sequence[Handful]) -> list[Handful]:
        """Leave out what was redriven or removed from a DLQ by hand. If anything was, it must be this DLQ."""
        gone = _gone_among(chosen, self._office.ledger.refresh())
        if gone:
            dlq = self._membership.queue
            begin_life(self._office.ledger, dlq, self._office.topics.identity(dlq))
            gone = _gone_among(chosen, self._office.ledger.rows)
        if gone:
            self._notes.commit((Window.finish, noted(gone)))
            with self._state:
                self._hands.let_go(gone)
        return [handful for handful in chosen if handful.held]

    def _move_out(self, plain: Found, steps: Sequence[Step]) -> Answers:
        """Outcomes of a subscription that moves: what is acked leaves the queue for everybody."""
        lost: set[Token] = set()
        mark = self._membership.identity.encode()
        answers = _answers_to(steps)
        keys = {token: gone_key(token[0].entry(token[1])) for token in (*_tokens_in(plain), *answers)}
        found = by_handful(keys)
        offsets = noted(found)
        proofs = self._notes.proofs(offsets)

        def decide(rows: Rows) -> Change | None:
            lost.clear()
            lost.update(token for token, key in keys.items() if rows.get(key, Row(mark)).value != mark)
            kept = [step for step in steps if step.item.delivery.token not in lost]
            later = {step.item.delivery.token for step in steps if step.due_at is not None}
            leaving = {key: Row(mark) for token, key in keys.items() if token not in lost and token not in later}
            if leaving and leaving.keys() <= rows.keys():  # a commit without an answer, which went through
                return None
            with self._state:
                commits = self._notes.commits(self._notes.after((Window.finish, offsets)))
            return Change(leaving, self._clerk.all_records(kept), self._notes.offsets(commits, proofs))

        with self._notes.transaction():
            self._office.ledger.change(decide)
            self._notes.apply((Window.finish, offsets))
            with self._state:
                for handful, offset in lost:
                    handful.gone.add(offset)
                self._hands.let_go(found, {token: answer for token, answer in answers.items() if token not in lost})
        return answers | dict.fromkeys(lost, LOST)


def _found_in(items: Sequence[Settlement | Delivery]) -> Found | None:
    """Where these stand, if all are successes with nothing to write."""
    if isinstance(items, InRows):
        return None if items.others else by_row(items.rows)
    if {*map(type, items)} != {Delivery}:
        return None
    tokens = [item[_TOKEN] for item in items]  # type: ignore[misc]  # they are all deliveries
    return by_handful(tokens) if {*map(type, tokens)} == {tuple} else None


def _tokens_of(items: Sequence[Settlement | Delivery]) -> list[Any]:
    return [item.token if isinstance(item, Delivery) else item.delivery.token for item in items]


def _tokens_in(found: Found) -> list[Token]:
    return [(handful, offset) for handful, offsets in found.items() for offset in offsets]


def _answers_to(steps: Sequence[Step]) -> Answers:
    """What is answered when these are carried out."""
    due = {at: DONE if at is None else DONE._replace(due_at=at) for at in {step.due_at for step in steps}}
    return {step.item.delivery.token: due[step.due_at] for step in steps}


def _each_once(tokens: Sequence[Token | str], answers: Answers) -> list[Settled]:
    """Answers to settlements of which some are there twice: the second of a kind changes nothing."""
    told: set[Token | str] = set()
    found = []
    for token in tokens:
        answer = answers.get(token, DONE)
        again = token in told and answer.status is SettleStatus.DONE
        found.append(answer._replace(status=SettleStatus.REPEATED) if again else answer)
        told.add(token)
    return found


def _gone_among(chosen: Sequence[Handful], rows: Rows) -> dict[Handful, list[int]]:
    return {
        handful: offsets
        for handful in chosen
        if (offsets := [offset for offset in handful.offsets if gone_key(handful.entry(offset)) in rows])
    }


def gone_key(entry: Entry) -> str:
    """Under which key the ledger says that an entry has left its DLQ."""
    return f"{GONE}{entry.message.id}"
