"""From tokens to a question, by recursive descent: one method a rule.

    question  = "help" | "tables" | "columns" [name] | show | summary | chart
    show      = "show" [name | names "from" name] tail          (names alone: of the table in hand)
    summary   = measure ["by" name] ["from" name] tail
    chart     = "chart" (measure | name) "by" name ["from" name] tail       (a name alone: its sum)
    measure   = ("sum" | "average" | "min" | "max") name | "count"
    tail      = ["where" either] ["order" "by" name ["asc" | "desc"]] ["limit" number]
    either    = both {"or" both}
    both      = plain {"and" plain}
    plain     = "not" plain | "(" either ")" | name comparison
    comparison = ("=" | "!=" | "<" | "<=" | ">" | ">=" | "contains") value | "is" ["not"] "empty"

Keywords are read in any case; a name that is one, or has blanks, goes in backticks.
"""

from __future__ import annotations

import math

from examples.tables.faults import Misread, Refused, Unknown, Word
from examples.tables.questions import (
    Columns,
    Comparison,
    Condition,
    Connective,
    Empty,
    Help,
    Joined,
    Measure,
    Negation,
    Operator,
    Order,
    Question,
    Show,
    Summary,
    Tables,
    Tail,
    Total,
)
from examples.tables.tokens import Kind, Token, tokens

__all__ = ["VERBS", "parse"]

VERBS = ("help", "tables", "columns", "show", "chart", *(total.value for total in Total))
RESERVED = {"where", "order", "by", "limit", "from", "and", "or", "not", "is", "empty", "contains"}
SIGNS = {operator.value: operator for operator in Operator} | {"<>": Operator.UNEQUAL}
LONGEST_QUESTION = 2_000
#: Parentheses and `not` inside each other: the parser's own stack is finite.
DEEPEST = 20
#: Digits of a limit.
LONGEST_LIMIT = 9
#: Largest number a JSON reader keeps exactly.
LARGEST = 2**53


def parse(question: str) -> Question:
    """Read a question. Raises Misread, Unknown (verb) and Refused."""
    if len(question) > LONGEST_QUESTION:
        raise Refused(f"A question has at most {LONGEST_QUESTION} characters.")
    return _Parser(question).question()


class _Parser:
    def __init__(self, question: str) -> None:
        self._question, self._tokens = question, tokens(question)
        self._next = self._depth = 0

    # --- tokens -----------------------------------------------------------------------------

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += token.kind is not Kind.END
        return token

    def _sees(self, *words: str) -> bool:
        token = self._token
        return token.kind in {Kind.WORD, Kind.SIGN} and token.value.lower() in words

    def _took(self, *words: str) -> str:
        """Take the next token if it is one of the words; returns which, or nothing."""
        return self._take().value.lower() if self._sees(*words) else ""

    def _need(self, word: str) -> None:
        if not self._took(word):
            raise self._misread(f'"{word}"')

    def _misread(self, expected: str) -> Misread:
        return Misread(self._question, self._token.at, expected)

    def _sees_name(self) -> bool:
        token = self._token
        return token.kind is Kind.NAME or (
            token.kind is Kind.WORD and token.value.lower() not in RESERVED
        )

    def _name(self, what: str) -> Word:
        if not self._sees_name():
            raise self._misread(what)
        token = self._take()
        return Word(token.value, token.at, token.length)

    # --- rules ------------------------------------------------------------------------------

    def question(self) -> Question:
        """Read the whole text."""
        verb = self._take()
        if verb.kind is not Kind.WORD:
            raise Misread(self._question, verb.at, f"one of {', '.join(VERBS)}")
        found = self._by_verb(verb)
        if self._token.kind is not Kind.END:
            raise self._misread(self._what_may_follow(found))
        return found

    def _by_verb(self, verb: Token) -> Question:
        match verb.value.lower():
            case "help":
                return Help()
            case "tables":
                return Tables()
            case "columns":
                return Columns(self._name("a table") if self._sees_name() else None)
            case "show":
                return self._show()
            case "chart":
                return self._summary(self._charted(), chart=True)
            case word if word in {total.value for total in Total}:
                return self._summary(self._measured(Total(word)), chart=False)
        raise Unknown("verb", Word(verb.value, verb.at, verb.length), VERBS)

    @staticmethod
    def _what_may_follow(question: Question) -> str:
        match question:
            case Help() | Tables() | Columns():
                return "the end"
            case Show(tail=tail) | Summary(tail=tail) if tail.limit is not None:
                return "the end"
            case Show(tail=tail) | Summary(tail=tail) if tail.order:
                return '"limit" or the end'
            case Show(tail=tail) | Summary(tail=tail) if tail.where:
                return '"and", "or", "order by", "limit" or the end'
        return '"where", "order by", "limit" or the end'

    def _show(self) -> Show:
        names = self._names() if self._sees_name() else ()
        if self._took("from"):
            return Show(self._name("a table"), names, self._tail())
        if len(names) == 1:
            return Show(names[0], (), self._tail())
        return Show(None, names, self._tail())

    def _names(self) -> tuple[Word, ...]:
        names = [self._name("a table or column")]
        while self._took(","):
            names.append(self._name("a column"))
        return tuple(names)

    def _charted(self) -> Measure:
        following = self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        alone = following.kind is Kind.WORD and following.value.lower() == "by"
        if self._sees(Total.COUNT.value) or (
            not alone and self._sees(*(total.value for total in Total))
        ):
            return self._measured(Total(self._take().value.lower()))
        return Measure(Total.SUM, self._name("a column to add up, or a measure such as count"))

    def _measured(self, total: Total) -> Measure:
        return Measure(total, None if total is Total.COUNT else self._name("a column"))

    def _summary(self, measure: Measure, *, chart: bool) -> Summary:
        by = None
        if self._took("by"):
            by = self._name("a column")
        elif chart:
            raise self._misread('"by" and the column that names the bars')
        table = self._name("a table") if self._took("from") else None
        return Summary(table, measure, by, self._tail(), chart)

    def _tail(self) -> Tail:
        where = self._either() if self._took("where") else None
        order = self._order() if self._took("order") else None
        limit = self._limit() if self._took("limit") else None
        return Tail(where=where, order=order, limit=limit)

    def _order(self) -> Order:
        self._need("by")
        column = self._name("a column")
        return Order(column, self._took("asc", "desc") == "desc")

    def _limit(self) -> int:
        token = self._token
        if (
            token.kind is not Kind.NUMBER
            or not token.value.isdecimal()
            or len(token.value) > LONGEST_LIMIT
        ):
            raise self._misread("how many rows")
        return int(self._take().value)

    def _either(self) -> Condition:
        found = [self._both()]
        while self._took("or"):
            found.append(self._both())
        return found[0] if len(found) == 1 else Joined(Connective.OR, tuple(found))

    def _both(self) -> Condition:
        found = [self._plain()]
        while self._took("and"):
            found.append(self._plain())
        return found[0] if len(found) == 1 else Joined(Connective.AND, tuple(found))

    def _plain(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Refused(f"Conditions may be nested {DEEPEST} deep.")
        try:
            return self._unguarded()
        finally:
            self._depth -= 1

    def _unguarded(self) -> Condition:
        if self._took("not"):
            return Negation(self._plain())
        if self._took("("):
            inner = self._either()
            self._need(")")
            return inner
        return self._comparison(self._name('a column, "not" or "("'))

    def _comparison(self, column: Word) -> Condition:
        if self._took("is"):
            negated = self._took("not")
            self._need("empty")
            return Negation(Empty(column)) if negated else Empty(column)
        sign = self._took(*SIGNS)
        if not sign:
            raise self._misread('a comparison: = != < <= > >= contains, or "is empty"')
        return Comparison(column, SIGNS[sign], self._value())

    def _value(self) -> str | int | float:
        token = self._token
        if token.kind is Kind.NUMBER:
            return number(self._take().value)
        # A word without quotes is what people write: country = Spain.
        if token.kind is Kind.STRING or self._sees_name():
            return self._take().value
        raise self._misread("a value: a number, or a text in quotes")


def number(text: str) -> int | float:
    """An int if it is one that every JSON reader keeps, else a finite float."""
    if "." not in text and len(text) <= len(str(-LARGEST)) and abs(int(text)) <= LARGEST:
        return int(text)
    value = float(text)
    return value if math.isfinite(value) else math.copysign(1.7e308, value)
