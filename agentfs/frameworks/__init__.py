"""Tools for agent frameworks: one module for each, which is imported only when it is asked for.

    from agentfs.frameworks import deepagents, langchain, openai_agents, pydantic_ai

They make the framework's own tools of a `Toolset`: our schemas, images as images, errors as the framework's
failed results. Calls that need approval wait for it by the framework's own mechanism, if `ask` is the
`Policy.on_ask` of the workspace. The backends of deepagents and pydantic-ai have a workspace below them.
"""

import re
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from agentfs.base.lazy import lazy_submodules
from agentfs.permission.ask import ask

__all__ = ["ask"]

__getattr__ = lazy_submodules(__name__)


@contextmanager
def needs(package: str, least: str, *, tested: str) -> Generator[None]:
    """Import a framework in the block.

    Args:
        package: The package, by the name that pip knows.
        least: The oldest version that has the names of the block, as far as we know.
        tested: The beginning of the newest tested version, such as "0.24".

    Raises:
        ImportError: The package is missing, or too old to have the names that the block imports.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"This adapter of agentfs needs {package} {least} or newer; installed: {_installed(package)}."
            f" Run: pip install '{package}>={least}'",
            name=error.name,
        ) from error
    numbers = [int(each) for each in re.findall(r"\d+", _installed(package))]
    newest = [int(each) for each in tested.split(".")]
    if numbers[: len(newest)] > newest:
        text = f"agentfs was tested with {package} up to {tested}.*, and {_installed(package)} is installed."
        warnings.warn(text, stacklevel=3)


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
