"""The benchmark of models with a scripted model: its tasks, checks, measures and intervals, without a key.

tests/interop/test_model_sets.py has the tools of other products.
"""

import importlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARK = ROOT / "benchmarks" / "models"
MODULES = ("run", "models", "tasks", "tool_sets")


@pytest.fixture(scope="module")
def run():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARK))
        yield importlib.import_module("run")
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)


def one_of_each(run):
    return list({task.kind: task for task in run.tasks()}.values())


def test_there_are_thirty_tasks_on_trees_that_are_the_same_each_time(run):
    tasks = run.tasks()
    assert [task.kind for task in tasks] == [kind for kind in run.KINDS for _ in range(6)]
    assert len({task.name for task in tasks}) == 30
    assert tasks == run.tasks()
    assert all(task.wanted.get(path) != data for task in tasks for path, data in task.files.items())


@pytest.mark.full
def test_a_script_solves_every_task_with_our_tools(run):
    outcomes = [run.attempt(task, "agentfs", None, sandboxed=False) for task in run.tasks()]
    assert [each.task for each in outcomes if not each.solved] == []
    assert [each.failed_edits for each in outcomes] == [int(each.kind != "find") for each in outcomes]
    assert {each.damaged for each in outcomes} == {0}
    assert min(each.tokens for each in outcomes) > 1000
    text = "\n".join(run.table(outcomes))
    assert "| agentfs | 30/30 (89% to 100%) | 0.8 (" in text


@pytest.mark.full
@pytest.mark.parametrize("name", ["anthropic-editor", "shell"])
def test_other_tool_sets_solve_a_task_of_each_kind(run, name):
    for task in one_of_each(run):
        outcome = run.attempt(task, name, None, sandboxed=False)
        assert (outcome.solved, outcome.damaged) == (True, 0), task.name
        assert outcome.failed_edits == (None if name == "shell" else int(task.kind != "find"))


def test_an_idle_model_solves_nothing(run):
    def idle(messages, schemas):
        return {"role": "assistant", "content": "Done."}, 1

    for task in one_of_each(run):
        outcome = run.attempt(task, "shell", idle, sandboxed=False)
        assert (outcome.solved, outcome.turns, outcome.tokens, outcome.damaged) == (False, 1, 1, 0), task.name


@pytest.mark.parametrize(("command", "damaged"), [
    ("sed -i s/Note/note/ README.md notes.txt; rm Makefile; touch made", 3),  # README has no such text
    ("sed -i 's/\\r$//' notes.txt", 1),
    ("iconv -f latin1 -t utf8 towns.csv -o new; mv new towns.csv", 1),
    ("sed -i s/8000/1/ settings.ini; printf x >>settings.ini", 1),
    ("true", 0),
])  # fmt: skip
def test_damaged_files_are_counted(run, command, damaged):
    def careless(messages, schemas):
        if messages[-1]["role"] == "tool":
            return {"role": "assistant", "content": "Done."}, 1
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}, 1

    named = {"settings.ini": "two places and a byte order mark"}
    wanted = next((task for path, task in named.items() if path in command), "a line of a long file")
    [task] = [task for task in run.tasks() if task.name == wanted]
    outcome = run.attempt(task, "shell", careless, sandboxed=False)
    assert (outcome.damaged, outcome.solved) == (damaged, False)


def test_a_wrong_call_is_answered_and_an_endless_model_is_stopped(run):
    def wrong(messages, schemas):
        function = {"name": "bash", "arguments": '{"cmd": '}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}, 1

    outcome = run.attempt(run.tasks()[0], "shell", wrong, sandboxed=False)
    assert (outcome.turns, outcome.solved) == (40, False)


def test_the_intervals_are_those_of_the_textbook(run):
    assert run.wilson(8, 10) == pytest.approx((0.490, 0.943), abs=0.001)
    assert run.wilson(0, 30) == pytest.approx((0, 0.1135), abs=0.001)
    low, high = run.bootstrap([[0.0], [1.0]] * 50)
    assert (low, high) == pytest.approx((0.4, 0.6), abs=0.03)
    assert run.bootstrap([[3.0, 3.0]] * 5) == (3, 3)


def test_a_provider_is_reached_by_its_key(run, monkeypatch):
    """A stand-in is overloaded once, makes one call, and is done. The key stays out of the shell."""
    bodies, keys = [], []

    class Provider(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            keys.append(self.headers["Authorization"])
            function = {"name": "bash", "arguments": '{"command": "env"}'}
            calls = [{"id": "1", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            if len(bodies) == 3:
                message = {"role": "assistant", "content": "Done."}
            answer = json.dumps({"choices": [{"message": message}], "usage": {"total_tokens": 7}}).encode()
            self.send_response(429 if len(bodies) == 1 else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    for name in run.models.PROVIDERS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit, match="ANTHROPIC_API_KEY"):
        run.models.chat("any")
    monkeypatch.setenv("MISTRAL_API_KEY", "secret-key")
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        model = run.models.chat("any", f"http://127.0.0.1:{server.server_port}/v1/")
        outcome = run.attempt(run.tasks()[0], "shell", model, sandboxed=False)
        server.shutdown()
        thread.join()
    assert (outcome.turns, outcome.tokens) == (2, 14)
    assert keys == ["Bearer secret-key"] * 3
    assert bodies[0]["tools"][0]["function"]["name"] == "bash"
    assert "PATH=" in bodies[2]["messages"][-1]["content"]
    assert "secret-key" not in json.dumps(bodies)


def test_the_script_says_that_it_measures_nothing(tmp_path):
    command = [sys.executable, str(BENCHMARK / "run.py"), "scripted", "--set", "agentfs", "--kind", "find"]
    out = tmp_path / "outcomes.jsonl"
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("The model was a script: these are no measurements.\n")
    assert len(out.read_text().splitlines()) == 6


def test_the_page_publishes_no_figures_yet():
    page = (ROOT / "docs" / "explanation" / "models.md").read_text(encoding="utf-8")
    assert "No figures are published yet" in page
    assert not [line for line in page.splitlines() if "%" in line and "95 %" not in line]
    assert "/30" not in page
