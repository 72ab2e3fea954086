"""A file in memory: its bytes and its text, changed so that all other bytes stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentfs.editing.change_map import Piece
from agentfs.errors import EncodingError
from agentfs.text import Decoded, decode, decode_as

UNKNOWN_8BIT = "unknown-8bit"
# In these a text has the bytes that it was decoded from; any other codec is put together and checked.
_PIECEWISE = {UNKNOWN_8BIT, "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"}


@dataclass(frozen=True)
class Document:
    """The content of a file.

    Attributes:
        data: The bytes.
        decoded: The text of these bytes, with its encoding and byte order mark.
    """

    data: bytes
    decoded: Decoded

    @classmethod
    def of(cls, data: bytes, encoding: str | None = None) -> "Document":
        """Decode the bytes of a file.

        Args:
            data: The bytes of the whole file.
            encoding: The codec that the caller knows the file to have, or None.

        Returns:
            The document.

        Raises:
            BinaryError: `binary`: the file is no text.
            EncodingError: `encoding`: it is not text in that codec.
            InvalidArgumentError: `invalid_argument`: no codec has that name.
        """
        return cls(data, decode(data) if encoding is None else decode_as(data, encoding))

    def changed(self, text: str, pieces: Sequence[Piece]) -> "Document":
        """Return the document with another text, and every byte of what stays as it was.

        Args:
            text: The text after.
            pieces: Where its stretches come from.

        Raises:
            EncodingError: `encoding`: the file's encoding cannot hold a new text.
        """
        decoded = self.decoded._replace(text=text)
        if self.decoded.encoding in _PIECEWISE:
            return Document(self.decoded.bom + self.decoded.encode(text), decoded)
        parts = [self.decoded.bom]
        position = 0
        for piece in pieces:
            end = position + piece.length
            stretch = text[position:end]
            if piece.origin is None:
                parts.append(self.decoded.encode(stretch))
            else:
                start = len(self.decoded.bom) + self._size(piece.origin)
                parts.append(self.data[start : start + len(self.decoded.encode(stretch))])
            position = end
        after = Document(b"".join(parts), decoded)
        after.check()
        return after

    def check(self) -> None:
        """Refuse bytes that do not say the text.

        Raises:
            EncodingError: `encoding`: in this codec a stretch means something else than it does alone.
        """
        encoding = self.decoded.encoding
        try:
            said = self.data[len(self.decoded.bom) :].decode(encoding)
        except UnicodeDecodeError:
            said = None
        if said != self.decoded.text:
            raise EncodingError(
                f"A text in {encoding} cannot be changed in part: a byte means what those before it make it.",
                hint="Write the whole file instead.",
                details={"encoding": encoding},
            )

    def _size(self, end: int) -> int:
        """Return how many bytes the text takes up to an offset."""
        return len(self.decoded.encode(self.decoded.text[:end]))
