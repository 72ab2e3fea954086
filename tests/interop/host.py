"""Run programs one after the other in this process, so that it imports each framework once.

    python host.py

A line of input is a job as JSON: [directory, file, argument …]. A line of output is the answer: the text that
the program printed, and its traceback or null.
"""

import io
import json
import os
import runpy
import sys
import traceback
from unittest import mock


def run(directory: str, *command: str) -> tuple[str, str | None]:
    printed, failure = io.StringIO(), None
    os.chdir(directory)
    path = [os.path.dirname(os.path.abspath(command[0])), *sys.path]
    with mock.patch.multiple(sys, argv=list(command), path=path, stdout=printed):
        try:
            runpy.run_path(command[0], run_name="__main__")
        except (Exception, SystemExit):  # noqa: BLE001 - the next program must run
            failure = traceback.format_exc()
    return printed.getvalue(), failure


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a program may print past `sys.stdout`
    for job in sys.stdin:
        print(json.dumps(run(*json.loads(job))), file=answers, flush=True)
