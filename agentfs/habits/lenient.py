"""Reading of the arguments that a model sent: JSON text, other names, unambiguous values of another type."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from agentfs.arguments.kinds import ArgumentReader, Kind, Parameter, PathOf, String, UnionOf, short_repr
from agentfs.base.advice import Advice, FirstOf, Joined, ToolName, plural
from agentfs.errors import InvalidArgumentError
from agentfs.habits.parameter_names import snake_case
from agentfs.text.nearest import nearest

# The longest JSON text that is parsed: the largest file that can be written, with every character escaped.
_MAX_CHARACTERS = 64 * 1024 * 1024
_AROUND = re.compile(r"\A```(?:json)?\s*|\s*(?:```|</\w+>)\s*\Z")
_TRAILING_COMMA = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_MAX_UNKNOWN = 100  # reading stops after this many unknown names
_MAX_NEAREST = 12  # unknown names whose nearest name is looked up


def parse_arguments(sent: Any, *, repair: bool = False) -> Mapping[Any, Any]:
    """Return the arguments that a model sent: a mapping, JSON text (also encoded twice), or None.

    Args:
        sent: The arguments.
        repair: Accept JSON in a fence, before a closing tag, or with trailing commas, as for a call that only
            reads.
    """
    value = sent
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = _parse_json(value, repair=repair) if value.strip() else None
            except _CutOffError as error:
                raise InvalidArgumentError(
                    f"The arguments are {error}.",
                    hint=Joined(
                        " ",
                        "Nothing was done. Write less in one call",
                        FirstOf(
                            Advice("and add the rest with ", ToolName("append"), "."),
                            "and add the rest later.",
                        ),
                    ),
                ) from None
            except _NotJSONError as error:
                raise InvalidArgumentError(
                    f"The arguments are {error}.",
                    hint="Send one JSON object; inside strings, escape quotes, backslashes and line ends.",
                ) from None
    if value is None:
        return {}
    arguments: Any = value
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"The arguments must be one JSON object, not {short_repr(value)}.",
            hint='Send the arguments by name, as in {"name": "value"}.',
        )
    return arguments  # type: ignore[no-any-return] # a mapping, as was just checked


class _NotJSONError(ValueError):
    """Raised for text that is not accepted as JSON. The message completes the sentence "it is …"."""


class _CutOffError(_NotJSONError):
    """Raised for JSON text that ends too early."""


def _parse_json(text: str, *, repair: bool = False) -> Any:
    """Return the value of JSON text, in whose strings raw line ends and tabs are accepted."""
    if len(text) > _MAX_CHARACTERS:
        raise _NotJSONError(f"over {_MAX_CHARACTERS:,} characters long")
    try:
        return json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if repair and (repaired := _repaired(text)) != text:
            return _parse_json(repaired)
        near = json.dumps(text[max(error.pos - 20, 0) : error.pos + 20])
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise _CutOffError(
                f"cut off after {plural(len(text), 'character')}, at {json.dumps(text[-20:])}"
            ) from None
        reason = error.msg[0].lower() + error.msg[1:]
        raise _NotJSONError(
            f"not valid JSON: {reason} at line {error.lineno}, column {error.colno}, near {near}"
        ) from None
    except RecursionError:
        raise _NotJSONError("nested too deep") from None
    except _NotJSONError:
        raise
    except ValueError:  # Python's own bound on the digits of an integer
        raise _NotJSONError("not accepted: a number in it has too many digits") from None


def _repaired(text: str) -> str:
    """Return JSON text without a fence, a closing tag after it, and trailing commas."""
    plain = _AROUND.sub("", text.strip())
    return _TRAILING_COMMA.sub(lambda found: found["string"] or "", plain)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _NotJSONError(f"ambiguous: {json.dumps(name[:60])} is given twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise _NotJSONError(f"not valid JSON: {name} is not a JSON number")


class LenientReader(ArgumentReader):
    """Reads the arguments of a model: JSON text, other names, unambiguous values of another type."""

    lenient = True

    def __init__(self, aliases: Mapping[str, str] = {}) -> None:
        """Start to read; `aliases` are other names of parameters and members, separated by spaces."""
        super().__init__()
        self._aliases = aliases

    def trial(self) -> ArgumentReader:
        """Return a reader with the same aliases."""
        return LenientReader(self._aliases)

    def assign_names(
        self,
        members: Sequence[Parameter],
        given: Mapping[Any, Any],
        prefix: str,
        more: Sequence[Parameter] = (),
    ) -> dict[str, Any]:
        """Return the given values under the names of the members.

        Args:
            members: The parameters of the tool, or the members of a record.
            given: The values as they were sent.
            prefix: The place of the record; "" for the arguments of a call.
            more: Parameters that are accepted, but not proposed for a misspelt name.
        """
        visible = [member.name for member in members]
        members = (*members, *more)
        by_name = {member.name: member for member in members}
        values = {name: given[name] for name in given if name in by_name}
        others = [name for name in given if name not in by_name]
        identifiers = {member.identifier: member.name for member in members} if others else {}
        spellings = _spellings(members, self._aliases) if others else {}
        sent_as: dict[str, str] = {}
        unknown = 0
        for key in others:
            text = key if isinstance(key, str) else repr(key)
            name = identifiers.get(text) or spellings.get(snake_case(text))
            where = f"{prefix}{name}"
            if name is None:
                unknown += 1
                near = nearest(snake_case(text), visible) if unknown <= _MAX_NEAREST else None
                self.add_unknown(text[:200], prefix, near)
                if unknown > _MAX_UNKNOWN:
                    break  # the call is refused anyway
            elif name not in values:
                values[name], sent_as[name] = given[key], text
                self.add_coercion(where, f"alias {short_repr(text)}")
            elif not _same(values[name], given[key]):
                first, second = short_repr(sent_as.get(name, name)), short_repr(text)
                self.add_problem(where, f"`{where}` is given twice, as {first} and as {second}")
        for name in [name for name in values if _is_null_text(by_name[name], values[name])]:
            self.add_coercion(f"{prefix}{name}", f"{short_repr(values.pop(name))} as not given")
        return values

    def parse(self, kind: Kind, value: Any, where: str) -> Any:
        """Return the value of JSON text for a list or an object; other text stays text."""
        if _looks_like_json(kind, value):
            with suppress(_NotJSONError):
                value = _parse_json(value)
                self.add_coercion(where, f"JSON text as {kind.noun}")
        return value

    def mismatch(self, kind: Kind, value: Any, where: str) -> None:
        """Record that a value is not of a kind; point at the mistake in JSON text."""
        if _looks_like_json(kind, value):
            try:
                _parse_json(value)
            except _NotJSONError as error:
                message = f"`{where}` must be {kind.description}, but is text that is {error}"
                return self.add_problem(where, message)
        return super().mismatch(kind, value, where)


def _looks_like_json(kind: Kind, value: Any) -> bool:
    return bool(kind.opening) and isinstance(value, str) and value.lstrip().startswith(kind.opening)


def _spellings(members: Sequence[Parameter], aliases: Mapping[str, str]) -> dict[str, str | None]:
    """Return the name that each spelling in lower snake case means, or None if it is ambiguous.

    The visible name in another case comes first, then the callable's own name, then aliases.
    """
    by_precedence = (
        [(snake_case(each.name), each.name) for each in members],
        [(snake_case(each.target), each.name) for each in members if each.target],
        [
            (alias, each.name)
            for each in members
            for key in {each.name, each.target}
            for alias in aliases.get(key, "").split()
        ],
    )
    known: dict[str, str | None] = {}
    for pairs in by_precedence:
        found: dict[str, str | None] = {}
        for spelling, name in pairs:
            found[spelling] = name if found.get(spelling, name) == name else None
        known = found | known
    return known


def _is_null_text(member: Parameter, value: Any) -> bool:
    """Return True for null, and text that means null, if the member may be left out."""
    kind = member.value_kind
    omitted = value is None
    if isinstance(value, str) and not isinstance(kind, (String, PathOf, UnionOf)):
        omitted = value.strip().lower() in ("", "null", "none") and not _is_choice(kind, value)
    return omitted and not member.required and not member.takes_null


def _is_choice(kind: Kind, text: str) -> bool:
    """Return True if a kind has choices and the text is one of them, for example "none"."""
    reader = LenientReader()
    kind.read(text, "", reader)
    return bool(kind.choices) and not reader.problems


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, (str, int)) and type(one) is type(other) and one == other
