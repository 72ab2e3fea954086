"""Read a model's arguments, as JSON text or parsed, as the values that the type hints ask for.

An unambiguous value is converted, and the coercion recorded. Everything else that is wrong is collected, so
that the model learns of all of it at once.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from agentfs.errors import InvalidArgumentError
from agentfs.nearest import nearest
from agentfs.tools.aliases import ALIASES, snake_case
from agentfs.tools.kinds import (
    ArgumentProblem,
    ArgumentReader,
    Kind,
    Parameter,
    String,
    UnionOf,
    describe_names,
    short_repr,
)

# The longest text that is parsed: the largest file that can be written, every character of it escaped.
MAX_CHARACTERS = 64 * 1024 * 1024
_MAX_REPORTED = 12
_MOST_UNKNOWN = 100  # unknown names that are looked at
_MOST_MEANT = 12  # of them, those for which the nearest name is looked for


class NotJSONError(ValueError):
    """The text is not JSON that is taken; the message completes a sentence, "it is …"."""


def parse_arguments(sent: Any) -> Mapping[Any, Any]:
    """Return the arguments that a model sent: a mapping, JSON text (also twice encoded), or None."""
    value = sent
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = parse_json(value) if value.strip() else None
            except NotJSONError as error:
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
    return arguments  # type: ignore[no-any-return] # a mapping, as was just seen


def refusal(
    tool: str, parameters: Sequence[Parameter], problems: Sequence[ArgumentProblem]
) -> InvalidArgumentError:
    """Return the error that names everything that is wrong with the arguments of a call."""
    messages = [problem.message for problem in problems[:_MAX_REPORTED]]
    if len(problems) > len(messages):
        messages.append(f"and {len(problems) - len(messages)} more problems")
    return InvalidArgumentError(
        f"{tool} was not run: {'; '.join(messages)}.",
        hint=f"{tool} takes {describe_names(parameters) or 'no arguments'}.",
        details={"problems": [problem._asdict() for problem in problems[:_MAX_REPORTED]]},
    )


def parse_json(text: str) -> Any:
    """Return the value of JSON text as models write it: raw line ends and tabs inside strings are taken."""
    if len(text) > MAX_CHARACTERS:
        raise NotJSONError(f"{len(text):,} characters long, where {MAX_CHARACTERS:,} are the most")
    try:
        return json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text.rstrip())
        reason = "it ends too early" if at_end else error.msg[0].lower() + error.msg[1:]
        near = json.dumps(text[max(error.pos - 20, 0) : error.pos + 20])
        raise NotJSONError(
            f"not valid JSON: {reason} at line {error.lineno}, column {error.colno}, near {near}"
        ) from None
    except RecursionError:
        raise NotJSONError("nested too deep") from None
    except NotJSONError:
        raise
    except ValueError:  # Python's own bound on the digits of an integer
        raise NotJSONError("not taken: a number in it has too many digits") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise NotJSONError(f"ambiguous: {json.dumps(name[:60])} is given twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSONError(f"not valid JSON: {name} is no JSON number")


class LenientReader(ArgumentReader):
    """Reads the arguments of a model: under other names, as JSON text, as values that can mean only one."""

    lenient = True

    def assign_names(
        self,
        members: Sequence[Parameter],
        given: Mapping[Any, Any],
        prefix: str,
        more: Sequence[Parameter] = (),
        aliases: Mapping[str, tuple[str, ...]] = {},
    ) -> dict[str, Any]:
        """Return the given values under the names of the members.

        Args:
            members: The parameters of the tool, or the members of a record.
            given: The values as they were sent.
            prefix: The place of the record, "" for arguments.
            more: Parameters that are taken but not proposed for a misspelt name.
            aliases: More names of some parameters.
        """
        visible = [member.name for member in members]
        members = (*members, *more)
        by_name = {member.name: member for member in members}
        values = {name: given[name] for name in given if name in by_name}
        others = [name for name in given if name not in by_name]
        identifiers = {member.identifier: member.name for member in members} if others else {}
        spellings = _spellings(members, aliases) if others else {}
        sent_as: dict[str, str] = {}
        unknown = 0
        for key in others:
            text = key if isinstance(key, str) else repr(key)
            name = identifiers.get(text) or spellings.get(snake_case(text))
            where = f"{prefix}{name}"
            if name is None:
                unknown += 1
                near = nearest(snake_case(text), visible) if unknown <= _MOST_MEANT else None
                self.add_unknown(text[:200], prefix, near)
                if unknown > _MOST_UNKNOWN:
                    break  # the call is refused anyway
            elif name not in values:
                values[name], sent_as[name] = given[key], text
                self.add_coercion(where, f"alias {short_repr(text)}")
            elif not _same(values[name], given[key]):
                first, second = short_repr(sent_as.get(name, name)), short_repr(text)
                self.add_problem(where, f"`{where}` is given twice, as {first} and as {second}")
        for name in [name for name in values if _means_omitted(by_name[name], values[name])]:
            self.add_coercion(f"{prefix}{name}", f"{short_repr(values.pop(name))} as not given")
        return values

    def parse(self, kind: Kind, value: Any, where: str) -> Any:
        """Return the value of JSON text for a list or an object; other text stays text."""
        if isinstance(value, str) and value.lstrip().startswith(kind.opening):
            with suppress(NotJSONError):
                value = parse_json(value)
                self.add_coercion(where, f"JSON text as {kind.noun}")
        return value

    def mismatch(self, kind: Kind, value: Any, where: str) -> None:
        """Record that a value is not of a kind; point at the mistake in JSON text."""
        if isinstance(value, str) and kind.opening and value.lstrip().startswith(kind.opening):
            try:
                parse_json(value)
            except NotJSONError as error:
                message = f"`{where}` must be {kind.description}, but is text that is {error}"
                return self.add_problem(where, message)
        return super().mismatch(kind, value, where)


def _spellings(
    members: Sequence[Parameter], more_aliases: Mapping[str, tuple[str, ...]]
) -> dict[str, str | None]:
    """Return the name that each spelling in lower snake case means, or None if it could mean two.

    The name in another case counts more than the callable's own name, and that more than the aliases of both.
    """
    known: dict[str, str | None] = {}
    for level in range(3):
        found: dict[str, str | None] = {}
        for member in members:
            own = member.target or member.name
            tables = ((table.get(key, ()) for table in (ALIASES, more_aliases)) for key in {member.name, own})
            aliases = [alias for table in tables for each in table for alias in each]
            for spelling in {snake_case(text) for text in ((member.name,), (own,), aliases)[level]}:
                found[spelling] = None if spelling in found else member.name
        known = found | known
    return known


def _means_omitted(member: Parameter, value: Any) -> bool:
    """Return True for null, and for text that means it, if the member may be left out."""
    omitted = value is None
    if isinstance(value, str) and not isinstance(member.value_kind, (String, UnionOf)):
        omitted = value.strip().lower() in ("", "null", "none")
    return omitted and not member.required and not member.takes_null


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, (str, int)) and type(one) is type(other) and one == other
