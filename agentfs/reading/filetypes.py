"""What a file is by its first bytes, whatever its name says."""

from typing import Final

# The offset, the bytes that stand there, and what that is.
_MAGIC: Final = (
    (0, b"\x7fELF", "ELF program"),
    (0, b"MZ", "Windows program"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (0, b"\x00asm", "WebAssembly module"),
    (0, b"!<arch>\n", "static library"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"PK\x05\x06", "ZIP archive"),
    (0, b"\x1f\x8b", "gzip archive"),
    (0, b"BZh", "bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "zstd archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (0, b"Rar!\x1a\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"PAR1", "Parquet table"),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5 file"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"BM", "BMP image"),
    (0, b"II*\x00", "TIFF image"),
    (0, b"MM\x00*", "TIFF image"),
    (0, b"\x00\x00\x01\x00", "icon"),
    (4, b"ftypavif", "AVIF image"),
    (4, b"ftypheic", "HEIC image"),
    (4, b"ftyp", "MP4 video"),
    (0, b"\x1aE\xdf\xa3", "Matroska video"),
    (8, b"AVI ", "AVI video"),
    (8, b"WAVE", "WAV sound"),
    (0, b"OggS", "Ogg sound"),
    (0, b"fLaC", "FLAC sound"),
    (0, b"ID3", "MP3 sound"),
    (0, b"wOFF", "WOFF font"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"\x00\x01\x00\x00\x00", "TrueType font"),
    (0, b"OTTO", "OpenType font"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office document"),
)


def kind_of(head: bytes) -> str:
    """Tell what a binary file is.

    Args:
        head: Its first bytes.

    Returns:
        A few words, or "" when it is nothing known.
    """
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset):
            return kind
    return ""


def hex_rows(data: bytes, position: int) -> list[str]:
    """Show bytes in hexadecimal, sixteen a row, as `xxd` and `hexdump -C` do.

    Args:
        data: The bytes.
        position: Where the first of them stands in its file.

    Returns:
        The rows: the position, the bytes, and their ASCII characters.
    """
    rows: list[str] = []
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        left, right = row[:8].hex(" "), row[8:].hex(" ")
        plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{position + start:08x}  {left:<23}  {right:<23}  |{plain}|")
    return rows
