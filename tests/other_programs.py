"""Random changes that other programs make to a tree."""

import os
import random
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def change(top: Path, draw: random.Random, names: Sequence[str], contents: Sequence[bytes]) -> None:
    """Make a change, unless the tree forbids it. Equal trees are changed alike by equal draws."""
    one, other, content = top / draw.choice(names), top / draw.choice(names), draw.choice(contents)
    number, size, mode = draw.randrange(24), draw.randrange(20), draw.choice([0o600, 0o644, 0o755])
    above, moved = one.parent, top / "moved"
    with suppress(OSError, UnicodeDecodeError):
        match number:
            case 0 | 1 | 2:
                above.mkdir(parents=True, exist_ok=True)
                one.write_bytes(content)
            case 3:
                with one.open("ab") as file:
                    file.write(content)
            case 4:
                os.truncate(one, size)
            case 5:
                one.unlink()
            case 6:
                other.parent.mkdir(parents=True, exist_ok=True)
                one.rename(other)
            case 7 | 8:
                old, new = (above, moved) if number == 7 else (moved, above)
                if top not in {old, new}:
                    old.rename(new)
            case 9:
                closes = os.geteuid() and one.is_dir()  # only root could compare what is in it
                one.chmod(mode | (0o700 if closes else 0))
            case 10:
                one.symlink_to(other.name)
            case 11:
                one.unlink()
                one.symlink_to(os.path.relpath(other, above))
            case 12:
                other.parent.mkdir(parents=True, exist_ok=True)
                os.link(one, other)
            case 13 if above != top:
                shutil.rmtree(above)
            case 14:
                one.mkdir(parents=True)
            case 15:
                one.rename(one.with_name(one.name.swapcase()))
            case 16:
                one.write_text(one.read_text().replace("1", "one"))
            case 17:
                other.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(one, other)
            case 18:
                one.unlink()
                one.mkdir()
                (one / "in").write_bytes(content)
            case 19 if above != top:
                above.chmod(0o700 | mode & 0o55)
            case 20:  # neither size nor time tells of it
                status = one.stat()
                one.write_bytes(one.read_bytes()[::-1])
                os.utime(one, ns=(status.st_atime_ns, status.st_mtime_ns))
            case 21:
                one.unlink()
                one.mkdir()
            case 22:
                one.rmdir()
                one.write_bytes(content)
            case 23:
                one.with_name("saving").write_bytes(content)
                one.with_name("saving").rename(one)


def start(top: Path, draw: random.Random, names: Sequence[str], contents: Sequence[bytes]) -> list[int]:
    """Start processes that change a tree at the same time, and return their ids."""
    children = []
    for seed in [draw.randrange(10**9) for _ in range(draw.randrange(1, 5))]:
        children.append(os.fork())
        if children[-1] == 0:
            try:
                chosen = random.Random(seed)
                for _ in range(chosen.randrange(1, 20)):
                    change(top, chosen, names, contents)
                os._exit(0)
            finally:
                os._exit(1)
    return children
