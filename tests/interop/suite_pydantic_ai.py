"""pydantic-ai's own suite for backends of workspaces; `test_backends.py` runs it where that is installed."""

import os
import shutil

import pytest
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from agentfs.frameworks.pydantic_ai import WorkspaceBackend

WAY = os.environ["AGENTFS_RUN"]


class TestBackend(WorkspaceBackendSuite):
    @pytest.fixture
    def anyio_backend(self):
        return "asyncio"

    @pytest.fixture
    def backend(self, tmp_path):
        return WorkspaceBackend(tmp_path, run=WAY)

    @pytest.fixture
    def fresh_backend(self, monkeypatch, tmp_path):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        return lambda: WorkspaceBackend(run=WAY)

    @pytest.fixture
    def attach_backend(self):
        return lambda ref: WorkspaceBackend(ref=ref, run=WAY)

    @pytest.fixture
    def destroy_environment(self):
        async def destroy(backend):
            shutil.rmtree(backend.ref.id)

        return destroy
