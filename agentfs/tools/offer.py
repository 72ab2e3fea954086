"""How a callable is offered to a model: under other names, with other words, and with its answer shown anew.

This is the seam on which dialects stand: another contract's names, arguments, defaults and output over the
same callables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from agentfs.messages import METHODS, Names, NextCall, Retry
from agentfs.results import ToolResult

Effect = Literal["read", "write", "edit"]


class RenderContext(NamedTuple):
    """What a renderer is given.

    Attributes:
        result: The answer as it would be without the renderer; its `next` and its text name what is offered.
        outcome: What the callable returned, or the error that refused or ended the call.
        arguments: What the callable was called with, under its own names; incomplete when the arguments were
            refused.
        names: What the tools at hand are called, for texts that the renderer makes itself.
    """

    result: ToolResult
    outcome: Any
    arguments: Mapping[str, Any]
    names: Names = METHODS


@dataclass(frozen=True)
class ToolOffer:
    """One callable as it is offered to a model; what is not said here stays as the callable has it.

    Parameters are meant by the callable's own names throughout; the names a model sees are those of
    `parameters` alone, and the callable's own name and its well-known aliases are accepted as well.

    Attributes:
        target: The callable: a plain function or a bound method, typed and documented.
        name: The name of the tool.
        description: What the tool does.
        parameters: For a parameter, the name that a model sees; it may be no identifier, such as "-A".
        descriptions: For a parameter, what a model is told of it.
        expose: Parameters after the `*` that a model sees too.
        hide: Parameters before the `*` that a model does not see; each needs a default or a preset.
        preset: Values that hold where the model gives none; for a parameter that it does not see, always.
        order: The parameters to show first, in this order; the others follow.
        aliases: Other names under which the tool may be called.
        effect: What it does to the world: "read" nothing, "write" the same when repeated, "edit" perhaps more
            each time. By default it is told by what the callable returns, and unknown otherwise.
        methods: The methods of a workspace that it is named for where a text names one, each with the
            arguments, by the names that a model sees, that make it that method. By default the one of its
            own name.
        renames: For a parameter of these methods, the callable's own for it, where they differ.
        follow: Turns a call of a method, which continues a result or is advised by an error, into arguments
            of this tool by the names that a model sees, or None to leave it to the rule that
            holds for all: a tool makes the calls of its `methods` that its parameters have a place for.
        vary: Turns other arguments of a method into other arguments of this tool, given those that it was
            called with, all by the names that a model sees, or None where it has none for them. By default
            the parameters of the same names, or of those that `renames` has.
        render: Makes the result that is returned from the one there would be, for answers, refusals and
            failures alike.
    """

    target: Callable[..., Any]
    name: str | None = None
    description: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    expose: Sequence[str] = ()
    hide: Sequence[str] = ()
    preset: Mapping[str, Any] = field(default_factory=dict[str, Any])
    order: Sequence[str] = ()
    aliases: Sequence[str] = ()
    effect: Effect | None = None
    methods: Mapping[str, Mapping[str, Any]] | None = None
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    follow: Callable[[NextCall], Mapping[str, Any] | None] | None = None
    vary: Callable[[Retry, Mapping[str, Any]], Retry | None] | None = None
    render: Callable[[RenderContext], ToolResult] | None = None
