"""langchain-tests' suite for sandboxes of deepagents; `test_backends.py` runs it where that is installed."""

import os

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from agentfs.frameworks.deepagents import Backend


class TestBackend(SandboxIntegrationTests):
    root = ""

    @pytest.fixture(scope="class")
    def sandbox(self, tmp_path_factory):
        root = tmp_path_factory.mktemp("sandbox")
        type(self).root = str(root)
        backend = Backend(root, run=os.environ["AGENTFS_RUN"])
        yield backend
        backend.close()

    @pytest.fixture(autouse=True)
    def sandbox_test_root(self, sandbox, request):
        del sandbox  # which sets the root
        return self.sandbox_path(request.node.name)

    @property
    def sandbox_root_dir(self):
        return self.root
