"""The files of a workspace as MCP resources: listed in pages, and read by the rules of the workspace."""

import os
import sys
import urllib.parse
from dataclasses import replace

from mcp import MCPError, types

from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, InvalidArgumentError, NotFoundError
from agentfs.fs import quote
from agentfs.limits import MIB
from agentfs.mcp.roots import ClientView, path_of
from agentfs.tools.result import from_error

PAGE = 500  # resources of one list
RESOURCE_BYTES = MIB  # of one text
TEMPLATE = types.ResourceTemplate(
    uri_template="file:///{+path}",
    name="file",
    description="A text file or an image of the workspace, by its absolute path.",
)


REVIEW = types.Resource(
    uri="agentfs:///review",
    name="review",
    description="What has changed since the opening and is not accepted, by hunks with their authors.",
    mime_type="text/plain",
)


def list_page(view: ClientView, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    """Return a page of the files that are neither hidden, ignored nor protected."""
    cursor = None if params is None else params.cursor
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidArgumentError("The cursor is not one of this server.")
    first = int(cursor or 0)
    found = view.workspace.find(types="f", limit=PAGE, offset=first)
    resources = [
        types.Resource(uri=_uri(view, entry.path), name=one_line(entry.path), size=entry.size)
        for entry in found.files
        if not entry.protected
    ]
    if not first and view.workspace.review().files:
        resources.insert(0, REVIEW)
    following = str(first + len(found.files)) if found.truncated else None
    return types.ListResourcesResult(resources=resources, next_cursor=following)


def read(view: ClientView, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Return a text, or an image as a blob."""
    uri = params.uri
    if str(uri) == REVIEW.uri:
        text = types.TextResourceContents(uri=uri, mime_type="text/plain", text=str(view.workspace.review()))
        return types.ReadResourceResult(contents=[text])
    path = path_of(uri)
    if path is None:
        raise NotFoundError(f"{quote(uri)} is not the URI of a local file.")
    # Whole, because a client cannot ask for the rest.
    limits = replace(
        view.workspace.limits,
        read_bytes=RESOURCE_BYTES,
        read_lines=sys.maxsize,
        line_chars=sys.maxsize,
        output_tokens=sys.maxsize,
    )
    workspace = view.workspace.view(limits=limits)
    result = workspace.read(path)
    if result.kind == "notebook":
        result = workspace.read(path, raw=True)
    if result.images:
        image = result.images[0]
        blob = types.BlobResourceContents(uri=uri, mime_type=image.media_type, blob=image.data)
        return types.ReadResourceResult(contents=[blob])
    if result.kind not in ("text", "notebook"):
        raise InvalidArgumentError(f"{quote(result.path)} is neither text nor an image that can be shown.")
    if result.truncated_by is not None:
        raise InvalidArgumentError(
            f"{quote(result.path)} is too large for a resource.", hint="Use the tools that read a part of it."
        )
    text = types.TextResourceContents(uri=uri, mime_type="text/plain", text=result.content)
    return types.ReadResourceResult(contents=[text])


def protocol_error(error: AgentFSError) -> MCPError:
    """Return an error as the protocol has it, without an outcome for a model."""
    return MCPError(code=types.INVALID_PARAMS, message=from_error(error).content)


def _uri(view: ClientView, path: str) -> str:
    return f"file:///{_quoted_path(view, path)}"


def _quoted_path(view: ClientView, path: str) -> str:
    return urllib.parse.quote(os.path.join(view.directory, path)).removeprefix("/")
