"""Count the public surface: names, methods and parameters of `Workspace`, and fields of the public classes.

Run it with the interpreter of any checkout, to compare two of them:

    python benchmarks/api_counts.py /path/to/checkout
"""

import argparse
import dataclasses
import importlib
import inspect
import sys


def is_result(found: type) -> bool:
    return dataclasses.is_dataclass(found) and any(base.__name__ == "Result" for base in found.__mro__)


def fields_of(found: object) -> int:
    return sum(not field.name.startswith("_") for field in dataclasses.fields(found))  # type: ignore[arg-type]


def declared_by(found: type) -> int:
    """Return the number of fields that a class adds to those that it inherits."""
    own = vars(found).get("__annotations__", {})
    return sum(not field.name.startswith("_") for field in dataclasses.fields(found) if field.name in own)


def counts() -> dict[str, int]:
    modules = ("agentfs", "agentfs.events", "agentfs.limits", "agentfs.policy", "agentfs.results")
    agentfs, events, limits, policy, results = map(importlib.import_module, modules)
    members = {
        name: member
        for name, member in inspect.getmembers(agentfs.Workspace)
        if not name.startswith("_") and callable(member)
    }
    parameters = [
        parameter
        for member in members.values()
        for parameter in inspect.signature(member).parameters.values()
        if parameter.name not in {"self", "cls"}
    ]
    classes = {found for found in vars(results).values() if isinstance(found, type) and is_result(found)}
    return {
        "public names": len(agentfs.__all__),
        "methods of Workspace": len(members),
        "their parameters": len(parameters),
        "of which keyword-only": sum(each.kind is each.KEYWORD_ONLY for each in parameters),
        "result classes": len(classes),
        "fields of results": sum(map(fields_of, classes)),
        "declared, each once": sum(map(declared_by, classes)),
        "fields of Policy": fields_of(policy.Policy),
        "fields of Limits": fields_of(limits.Limits),
        "fields of Event": fields_of(events.Event),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkout", nargs="?", default=".", help="a directory with the package")
    sys.path.insert(0, parser.parse_args().checkout)
    for name, count in counts().items():
        print(f"{name:24} {count:4}")


if __name__ == "__main__":
    main()
