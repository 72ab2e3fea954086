"""The schemas of the seven tools for each provider, frozen; `scripts/snapshots.py` rewrites them."""

import json
from pathlib import Path

import pytest

from agentfs import Workspace
from tests.provider_rules import CHECKERS, STRICT

FOLDER = Path(__file__).parents[1] / "snapshots"
MODES = [(name, False) for name in CHECKERS] + [(name, True) for name in STRICT]


def snapshot(provider: str, *, strict: bool) -> Path:
    return FOLDER / f"{provider}{'-strict' if strict else ''}.json"


@pytest.mark.parametrize(("provider", "strict"), MODES)
def test_the_seven_equal_the_snapshot(tmp_path, provider, strict):
    kept = snapshot(provider, strict=strict).read_text(encoding="utf-8")
    with Workspace(tmp_path) as ws:
        made = ws.tools().schemas(provider, strict=strict)
    assert made == json.loads(kept)
    # The order of keys matters too, because providers cache prompts by their text.
    assert json.dumps(made, indent=2, ensure_ascii=False) + "\n" == kept


def test_each_provider_has_one_snapshot():
    expected = {snapshot(provider, strict=strict).name for provider, strict in MODES}
    assert {path.name for path in FOLDER.iterdir()} == expected
