"""JSON text as models write it, read strictly where a guess could go wrong."""

import json
from typing import Any, NoReturn

# The longest text that is parsed: the largest file that can be written, every character of it escaped.
MAX_CHARACTERS = 64 * 1024 * 1024


class NotJSONError(ValueError):
    """The text is no JSON that is taken; the message completes a sentence, "it is …"."""


def read_json(text: str) -> Any:
    """Return the value of JSON text.

    Raw line ends and tabs inside strings are taken as they are. A name given twice, NaN and Infinity, and
    what is nested too deep or is too long are errors.

    Args:
        text: The text.

    Raises:
        NotJSONError: The text is no JSON; the message points at the place.
    """
    if len(text) > MAX_CHARACTERS:
        raise NotJSONError(f"{len(text):,} characters long, where {MAX_CHARACTERS:,} are the most")
    try:
        return json.loads(text, strict=False, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        reason = (
            "it ends too early" if error.pos >= len(text.rstrip()) else error.msg[0].lower() + error.msg[1:]
        )
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value] # always None
        raise NotJSONError(f"ambiguous: {json.dumps(twice[:60])} is given twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSONError(f"not valid JSON: {name} is no JSON number")
