"""Measure `import agentfs` beyond `import re, json, dataclasses`, in fresh interpreters, interleaved."""

import statistics
import subprocess
import sys
import time

BASE = "import re, json, dataclasses"
OURS = "import re, json, dataclasses, agentfs"
OPENED = "import re, json, dataclasses, agentfs; agentfs.Workspace('.')"


def milliseconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    codes = (BASE, OURS, OPENED)
    for code in codes:
        milliseconds(code)  # warm up: compiled modules, disk cache
    rounds = [[milliseconds(code) for code in codes] for _ in range(21)]
    for number, code in enumerate(codes):
        median = statistics.median(times[number] for times in rounds)
        extra = statistics.median(times[number] - times[0] for times in rounds)
        print(f"{median:5.1f} ms, {extra:5.1f} more: {code}")
    print(f"medians of {len(rounds)} interleaved rounds; aim for the import alone: at most 30 more")


if __name__ == "__main__":
    main()
