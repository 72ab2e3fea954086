"""The versions of the frameworks' packages that the tests run."""

import re
import warnings
from importlib.metadata import version


def warn_if_newer(package: str, tested: str) -> None:
    """Warn about a package that is newer than the tested versions; an adapter calls this when it is imported.

    Args:
        package: The package.
        tested: The beginning of the newest tested version, such as "0.24".
    """
    installed = version(package)
    numbers = [int(each) for each in re.findall(r"\d+", installed)]
    newest = [int(each) for each in tested.split(".")]
    if numbers[: len(newest)] > newest:
        text = f"agentfs was tested with {package} up to {tested}.*, and {installed} is installed."
        warnings.warn(text, stacklevel=2)
