"""The time of `review` after 1,000 edits of 200 files."""

import random
import tempfile
import time
from pathlib import Path

from agentfs import Workspace

FILES, LINES, STEPS, ROUNDS = 200, 200, 1000, 9


def main() -> None:
    """Print the shortest time of some reviews."""
    chosen = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        for number in range(FILES):
            (top / f"{number}.py").write_text("".join(f"line {at}\n" for at in range(LINES)))
        with Workspace(top) as workspace:
            for step in range(STEPS):
                file = top / f"{chosen.randrange(FILES)}.py"
                line = chosen.choice(file.read_text().splitlines(keepends=True))
                workspace.edit(file, line, f"step {step}\n")
            times: list[tuple[float, float]] = []
            for _ in range(ROUNDS):
                cpu, wall = time.process_time(), time.perf_counter()
                review = workspace.review()
                times.append((time.process_time() - cpu, time.perf_counter() - wall))
    used, passed = (min(each) * 1000 for each in zip(*times, strict=True))
    print(f"{review.summary}: {used:.0f} ms of processor time, {passed:.0f} ms in all")


if __name__ == "__main__":
    main()
