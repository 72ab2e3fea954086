"""A file in memory: its bytes and its text, spliced together so that all other bytes stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentfs.editing.splicing import Splice
from agentfs.errors import EncodingError
from agentfs.text import Decoded, decode, decode_as

UNKNOWN_8BIT = "unknown-8bit"
_WIDTHS = {UNKNOWN_8BIT: 1, "utf-32-le": 4, "utf-32-be": 4}
# In these a stretch of text has the same bytes wherever it stands; any other codec is checked afterwards.
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

    def spliced(self, splices: Sequence[Splice]) -> "Document":
        """Replace stretches of the text in the original bytes.

        Args:
            splices: Stretches by offsets in the text, in order and apart.

        Returns:
            The document with every byte outside the stretches as it was.

        Raises:
            EncodingError: `encoding`: the file's encoding cannot hold a new text.
        """
        text = self.decoded.text
        width = (
            1 if self.decoded.encoding == "utf-8" and text.isascii() else _WIDTHS.get(self.decoded.encoding)
        )
        data_parts: list[bytes] = []
        text_parts: list[str] = []
        position = 0
        offset = kept = len(self.decoded.bom)
        data_parts.append(self.data[:kept])
        for splice in splices:
            start = offset + self._size(text, position, splice.start, width)
            offset = start + self._size(text, splice.start, splice.end, width)
            data_parts += (self.data[kept:start], self.decoded.encode(splice.new))
            text_parts += (text[position : splice.start], splice.new)
            position, kept = splice.end, offset
        data_parts.append(self.data[kept:])
        text_parts.append(text[position:])
        after = Document(b"".join(data_parts), self.decoded._replace(text="".join(text_parts)))
        if self.decoded.encoding not in _PIECEWISE:
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

    def _size(self, text: str, start: int, end: int, width: int | None) -> int:
        """Return how many bytes a stretch of the text takes."""
        if width is not None:
            return (end - start) * width
        return len(self.decoded.encode(text[start:end]))
