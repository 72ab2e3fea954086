"""Print the descriptions of all parameters as a framework, named by the argument, shows them to a model."""

import json
import sys
import tempfile

from agentfs import Workspace

with Workspace(tempfile.mkdtemp()) as ws:
    functions = ws.tools().functions()
if sys.argv[1] == "autogen":
    from autogen_core.tools import FunctionTool

    schemas = {
        each.__name__: FunctionTool(each, description="x").schema["parameters"]["properties"]
        for each in functions
    }
else:
    from llama_index.core.tools import FunctionTool

    tools = [FunctionTool.from_defaults(each) for each in functions]
    schemas = {each.metadata.name: each.metadata.get_parameters_dict()["properties"] for each in tools}
described = {
    name: {key: value.get("description") for key, value in each.items()} for name, each in schemas.items()
}
sys.stdout.write(json.dumps(described))
