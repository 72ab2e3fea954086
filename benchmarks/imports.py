"""What `import agentfs` costs over `import re, json, dataclasses`, in fresh interpreters, interleaved."""

import statistics
import subprocess
import sys
import time

BASE = "import re, json, dataclasses"
OURS = "import re, json, dataclasses, agentfs"


def milliseconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    for code in (BASE, OURS):
        milliseconds(code)  # warm up: compiled modules, disk cache
    pairs = [(milliseconds(BASE), milliseconds(OURS)) for _ in range(21)]
    base = statistics.median(pair[0] for pair in pairs)
    ours = statistics.median(pair[1] for pair in pairs)
    extra = statistics.median(pair[1] - pair[0] for pair in pairs)
    print(f"{BASE}: {base:.1f} ms")
    print(f"{OURS}: {ours:.1f} ms")
    print(f"agentfs takes {extra:.1f} ms more (median of {len(pairs)} interleaved pairs; aim: at most 30)")


if __name__ == "__main__":
    main()
