"""The files as resources: the same rules as for the tools, in pages, and whole or not at all."""

import base64
import json
import os
import sys

import pytest
from mcp import MCPError
from PIL import Image as Pillow

from agentfs import Policy
from agentfs.mcp import WorkspaceServer, resources
from tests.mcp.servers import client, process_client, roots_of, served
from tests.mcp.test_questions import MODES, User


async def every(connected):
    """All resources, and the number of pages."""
    found, pages, cursor = [], 0, None
    while pages == 0 or cursor is not None:
        page = await connected.list_resources(cursor=cursor)
        found += page.resources
        pages, cursor = pages + 1, page.next_cursor
        assert pages < 100
    return found, pages


async def text_of(connected, path):
    """The text of a file, or the message of the error."""
    try:
        [content] = (await connected.read_resource(path.as_uri())).contents
    except MCPError as error:
        return error.error.message
    return content.text


@MODES
async def test_the_files_are_listed_and_read(tree, mode):
    (tree / ".gitignore").write_text("ignored\n")
    (tree / "ignored").write_text("x")
    (tree / ".env").write_text("KEY=1\n")
    (tree / "server.key").write_text("x")
    (tree / "ä #?%41.txt").write_bytes("\ufeffone\r\ntwo".encode())
    (tree / "link.txt").symlink_to("a.txt")
    async with process_client(tree, mode=mode) as connected:
        listed, _ = await every(connected)
        assert [resource.name for resource in listed] == ["a.txt", "other/d.txt", "sub/c.txt", "ä #?%41.txt"]
        assert [str(resource.uri) for resource in listed] == [
            (tree / resource.name).as_uri() for resource in listed
        ]
        assert [resource.size for resource in listed] == [14, 6, 6, 11]
        assert await text_of(connected, tree / "a.txt") == "one\ntwo\nthree\n"
        assert await text_of(connected, tree / "ä #?%41.txt") == "one\r\ntwo"
        assert await text_of(connected, tree / "link.txt") == "one\ntwo\nthree\n"


async def test_a_long_list_comes_in_pages(tree):
    for number in range(2 * resources.PAGE):
        (tree / f"{number}.txt").touch()
    (tree / "1.key").touch()
    async with client(tree) as connected:
        listed, pages = await every(connected)
        for wrong in ("x", "-1", "1" * 30, "\u0661"):
            with pytest.raises(MCPError, match="cursor"):
                await connected.list_resources(cursor=wrong)
    assert len({str(resource.uri) for resource in listed}) == len(listed) == 2 * resources.PAGE + 3
    assert pages == 3


async def test_images_are_blobs_and_notebooks_are_their_json(tree):
    Pillow.new("RGB", (3, 2)).save(tree / "dot.png")
    notebook = {"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    (tree / "n.ipynb").write_text(json.dumps(notebook))
    async with client(tree) as connected:
        [image] = (await connected.read_resource((tree / "dot.png").as_uri())).contents
        assert image.mime_type == "image/png"
        assert base64.b64decode(image.blob) == (tree / "dot.png").read_bytes()
        assert json.loads(await text_of(connected, tree / "n.ipynb")) == notebook


async def test_a_text_is_whole_or_an_error(tree):
    (tree / "long.txt").write_text("x" * (resources.RESOURCE_BYTES - 1000))
    (tree / "lines.txt").write_text("line\n" * 10_000)
    (tree / "larger.txt").write_text("line\n" * 300_000)
    (tree / "data.bin").write_bytes(b"\0\1")
    async with client(tree) as connected:
        for name in ("long.txt", "lines.txt"):
            assert await text_of(connected, tree / name) == (tree / name).read_text()
        assert "too large for a resource" in await text_of(connected, tree / "larger.txt")
        assert "neither text nor an image" in await text_of(connected, tree / "data.bin")
        assert "neither text nor an image" in await text_of(connected, tree / "sub")
        assert "does not exist" in await text_of(connected, tree / "missing")


async def test_the_template_names_a_file(tree):
    async with client(tree) as connected:
        [template] = (await connected.list_resource_templates()).resource_templates
        uri = template.uri_template.replace("{+path}", str(tree / "a.txt").removeprefix("/"))
        assert uri == (tree / "a.txt").as_uri()
        assert (await connected.read_resource(uri)).contents[0].text == "one\ntwo\nthree\n"


@MODES
async def test_no_uri_reads_what_no_tool_reads(tree, mode):
    """Attack: the same secrets, by every spelling of a URI."""
    secrets = ["other/d.txt", ".env", "b.hush", "outside"]
    (tree / "outside").symlink_to("/etc/hostname")
    (tree / "around").symlink_to("other")
    for name in (".env", "b.hush"):
        (tree / name).write_text("three\n")
    policy = ("--deny", "read(other/**)", "--protect", "*.hush")
    async with client(tree, *policy, mode=mode) as connected:
        assert "b.hush" not in str(await every(connected))
        uris = [(tree / name).as_uri() for name in [*secrets, "around/d.txt"]]
        uris += [f"file://{tree}/sub/../{name}" for name in secrets]
        uris += [f"file://localhost{tree}/%6fther/d.txt", f"file://{tree}//other//d.txt", f"FILE:{tree}/.env"]
        uris += ["file:///etc/passwd", f"file://{tree}/../../etc/passwd", f"file://elsewhere{tree}/a.txt"]
        uris += [
            "file:///etc/passwd%00",
            "a.txt",
            "http://localhost/a.txt",
            "",
            "file://[/a.txt",
            "file:a.txt",
        ]
        uris += ["@out_1234", "file:///proc/self/environ", f"file://{tree}/other%2fd.txt"]
        for uri in uris:
            with pytest.raises(MCPError) as raised:
                await connected.read_resource(uri)
            assert "three" not in str(raised.value), uri
            assert "root:" not in str(raised.value), uri


@MODES
async def test_a_clients_roots_narrow_the_resources(tree, mode):
    """Attack: nothing outside the client's roots is named or read."""
    roots = roots_of(tree, "sub")
    async with client(tree, mode=mode, list_roots_callback=roots) as connected:
        assert await text_of(connected, tree / "sub" / "c.txt") == "three\n"
        for path in ("a.txt", "other/d.txt", "other/none", "sub/../a.txt"):
            assert "outside the allowed directories" in await text_of(connected, tree / path)
        templates = (await connected.list_resource_templates()).resource_templates
        assert str(tree) not in str(templates)
        listed, _ = await every(connected)
        names = [(tree / name).as_uri() for name in ("a.txt", "other/d.txt", "sub/c.txt")]
        # From 2026-07-28 on, a list cannot ask for roots.
        assert [str(resource.uri) for resource in listed] == names[2:] if mode == "legacy" else names


@MODES
async def test_the_changes_are_a_resource_until_they_are_accepted(tree, mode):
    (tree / "sub" / "secret.txt").write_text("one\n")
    server = WorkspaceServer(str(tree), policy=Policy(deny=["read(sub/secret.txt)"], overwrite="always"))
    async with served(server, mode=mode) as connected:
        assert "review" not in [each.name for each in (await every(connected))[0]]
        await connected.call_tool("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"})
        await connected.call_tool("write", {"path": "sub/secret.txt", "content": "hidden\n"})
        (listed, *_), _ = await every(connected)
        [content] = (await connected.read_resource(listed.uri)).contents
        assert listed.name == "review"
        assert "-two\n+2" in content.text
        assert "by tool edit" in content.text
        assert "hidden" not in content.text


@MODES
async def test_the_user_is_asked_before_a_resource_is_read(tree, mode):
    user = User("accept", "decline")
    server = WorkspaceServer(str(tree), policy=Policy(ask=["read(sub/**)"]))
    async with served(server, mode=mode, elicitation_callback=user) as connected:
        assert await text_of(connected, tree / "a.txt") == "one\ntwo\nthree\n"
        assert await text_of(connected, tree / "sub" / "c.txt") == "three\n"
        assert "did not allow" in await text_of(connected, tree / "sub" / "c.txt")
    assert [message.partition(".")[0] for message in user.asked] == ["read wants to use sub/c"] * 2


async def test_a_list_that_needs_an_answer_is_an_error_if_the_protocol_cannot_ask(tree):
    for mode, answers in (("legacy", ["accept"]), ("auto", [])):
        user = User(*answers)
        async with client(tree, "--ask", "search", mode=mode, elicitation_callback=user) as connected:
            if answers:
                assert len((await connected.list_resources()).resources) == 3
            else:
                with pytest.raises(MCPError, match="must be asked"):
                    await connected.list_resources()


async def test_resources_of_another_machine(tree):
    serve = f"{sys.executable} -m agentfs serve --root {tree}"
    async with client(tree, "--connect", serve) as connected:
        listed, _ = await every(connected)
        assert [resource.name for resource in listed] == ["a.txt", "other/d.txt", "sub/c.txt"]
        assert await text_of(connected, tree / "sub" / "c.txt") == "three\n"
        assert "outside the workspace" in await text_of(connected, tree.parent / "x")


async def test_a_name_that_is_not_utf8_is_listed_and_read(tree):
    descriptor = os.open(os.fsencode(tree) + b"/caf\xe9.txt", os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, b"text\n")
    os.close(descriptor)
    async with client(tree) as connected:
        listed, _ = await every(connected)
        [uri] = [resource.uri for resource in listed if "caf" in resource.name]
        assert (await connected.read_resource(uri)).contents[0].text == "text\n"


async def test_control_characters_in_names_are_visible(tree):
    (tree / "a\x1b[2K\u202eb").write_text("x\n")
    async with client(tree) as connected:
        listed, _ = await every(connected)
        assert "\x1b" not in str([resource.name for resource in listed])
        [uri] = [resource.uri for resource in listed if "%1B" in str(resource.uri)]
        assert (await connected.read_resource(uri)).contents[0].text == "x\n"
