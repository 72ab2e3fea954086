"""JSON text that models send: the arguments of a call, and lists and objects inside strings.

`short_repr` shows a value of JSON in an error message.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from types import NoneType
from typing import Any, NoReturn

from agentfs.base.advice import Advice, FirstOf, Joined, ToolName, plural
from agentfs.errors import InvalidArgumentError
from agentfs.limits import LARGEST

# The longest JSON text that is parsed: the largest file that can be written, with every character escaped.
_MAX_CHARACTERS = 64 * 1024 * 1024
_AROUND = re.compile(r"\A```(?:json)?\s*|\s*(?:```|</\w+>)\s*\Z")
_TRAILING_COMMA = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_REST = FirstOf(Advice("and add the rest with ", ToolName("append"), "."), "and add the rest later.")
_WRITE_LESS = Joined(" ", "Nothing was done. Write less in one call", _REST)


class NotJSONError(Exception):
    """Raised for text that is not accepted as JSON. The message completes the sentence "it is …"."""

    hint: Any = "Send one JSON object; inside strings, escape quotes, backslashes and line ends."


class _CutOffError(NotJSONError):
    """Raised for JSON text that ends too early."""

    hint = _WRITE_LESS


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
                value = parse_json(value, repair=repair) if value.strip() else None
            except NotJSONError as error:
                raise InvalidArgumentError(f"The arguments are {error}.", hint=error.hint) from None
    if not isinstance(value, (Mapping, NoneType)):
        raise InvalidArgumentError(
            f"The arguments must be one JSON object, not {short_repr(value)}.",
            hint='Send the arguments by name, as in {"name": "value"}.',
        )
    return value or {}  # pyright: ignore[reportUnknownVariableType] # a mapping of anything


def parse_json(text: str, *, repair: bool = False) -> Any:
    """Return the value of JSON text, in whose strings raw line ends and tabs are accepted."""
    if len(text) > _MAX_CHARACTERS:
        raise NotJSONError(f"over {_MAX_CHARACTERS:,} characters long")
    try:
        return json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if repair and (repaired := _repaired(text)) != text:
            return parse_json(repaired)
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            count = plural(len(text), "character")
            raise _CutOffError(f"cut off after {count}, at {json.dumps(text[-20:])}") from None
        reason = error.msg[0].lower() + error.msg[1:]
        near = json.dumps(text[max(error.pos - 20, 0) : error.pos + 20])
        raise NotJSONError(
            f"not valid JSON: {reason} at line {error.lineno}, column {error.colno}, near {near}"
        ) from None
    except RecursionError:
        raise NotJSONError("nested too deep") from None
    except ValueError:  # Python's own bound on the digits of an integer
        raise NotJSONError("not accepted: a number in it has too many digits") from None


def _repaired(text: str) -> str:
    """Return JSON text without a fence, a closing tag after it, and trailing commas."""
    return _TRAILING_COMMA.sub(lambda found: found["string"] or "", _AROUND.sub("", text.strip()))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise NotJSONError(f"ambiguous: {json.dumps(name[:60])} is given twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSONError(f"not valid JSON: {name} is not a JSON number")


def short_repr(value: Any) -> str:
    """Return a value for an error message: short, on one line, ASCII."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return json.dumps(value if len(value) <= 60 else f"{value[:57]}...")
    if isinstance(value, (int, float)):
        is_short = isinstance(value, float) or abs(value) <= LARGEST
        return repr(value) if is_short else "an integer of more than 64 bits"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"
