"""The types of the providers' own packages, for type checkers only; at run time this module is empty.

A schema or message is a class here, so that a checker knows its type even if the package is not installed. It
then accepts any use. A call is any object with the type or the fields of the provider's calls.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownVariableType=false

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from anthropic.types import ToolParam, UserMessageParam
    from google.genai.types import ContentDict, FunctionDeclarationDict
    from openai.types.chat import (
        ChatCompletionFunctionToolParam,
        ChatCompletionToolMessageParam,
        ChatCompletionUserMessageParam,
    )
    from openai.types.responses import FunctionToolParam
    from openai.types.responses.response_custom_tool_call_output_param import (
        ResponseCustomToolCallOutputParam,
    )
    from openai.types.responses.response_input_item_param import (
        ApplyPatchCallOutput,
        FunctionCallOutput,
        ShellCallOutput,
    )

    class OpenAITool(ChatCompletionFunctionToolParam):
        """A tool of chat completions."""

    class ResponsesTool(FunctionToolParam):
        """A tool of the responses API."""

    class AnthropicTool(ToolParam):
        """A tool of the messages API."""

    class GeminiTool(FunctionDeclarationDict):
        """A function declaration; its keys are those of the REST API, as in `parametersJsonSchema`."""

    class OpenAIAnswer(ChatCompletionToolMessageParam):
        """The answer to a call of chat completions."""

    class OpenAIImages(ChatCompletionUserMessageParam):
        """The images of the answers before it."""

    class ResponsesAnswer(FunctionCallOutput):
        """The answer to a function call of the responses API."""

    class ResponsesFreeformAnswer(ResponseCustomToolCallOutputParam):
        """The answer to a freeform call of the responses API."""

    class ResponsesPatchAnswer(ApplyPatchCallOutput):
        """The answer to an `apply_patch_call` of the responses API."""

    class ResponsesShellAnswer(ShellCallOutput):
        """The answer to a `shell_call` of the responses API."""

    class AnthropicMessage(UserMessageParam):
        """The answers to the calls of one turn."""

    class GeminiMessage(ContentDict):
        """The answers to the calls of one turn; its keys are those of the REST API."""

    OpenAIMessage: TypeAlias = OpenAIAnswer | OpenAIImages
    ResponsesMessage: TypeAlias = (
        ResponsesAnswer | ResponsesFreeformAnswer | ResponsesPatchAnswer | ResponsesShellAnswer
    )

    class OpenAICall(Protocol):
        """A call of chat completions."""

        @property
        def type(self) -> Literal["function", "custom"]: ...  # noqa: D102 - the providers' own

    class ResponsesCall(Protocol):
        """A call of the responses API."""

        @property
        def type(self) -> Literal["function_call", "custom_tool_call", "apply_patch_call", "shell_call"]: ...  # noqa: D102

    class AnthropicCall(Protocol):
        """A call of the messages API."""

        @property
        def type(self) -> Literal["tool_use"]: ...  # noqa: D102

    class GeminiCall(Protocol):
        """A call of the Gemini API."""

        @property
        def args(self) -> Mapping[str, Any] | None: ...  # noqa: D102
