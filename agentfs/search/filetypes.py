"""Types of files by name, as `grep` takes them in `type`; the names are those that ripgrep's users know."""

from collections.abc import Callable, Sequence

from agentfs.errors import InvalidArgumentError

# `.x` is an extension, `x*` the beginning of a name, `*x*` a part of one, anything else a whole name.
_TYPES = {
    "ada": ".adb .ads",
    "agda": ".agda .lagda",
    "asciidoc": ".adoc .asc .asciidoc",
    "asm": ".asm .s .S",
    "avro": ".avdl .avpr .avsc",
    "awk": ".awk",
    "bat": ".bat .cmd",
    "bazel": ".bazel .bazelrc .bzl .BUILD BUILD MODULE WORKSPACE",
    "c": ".c .h .C .H .c.in .h.in .C.in .H.in .cats",
    "cabal": ".cabal",
    "clojure": ".clj .cljc .cljs .cljx",
    "cmake": ".cmake CMakeLists.txt",
    "coffeescript": ".coffee",
    "config": ".cfg .conf .config .ini",
    "coq": ".v",
    "cpp": ".cpp .cxx .cc .C .hpp .hxx .hh .h .H .inl .cpp.in .cxx.in .cc.in .hpp.in .hxx.in .hh.in .h.in"
    " .C.in .H.in",
    "crystal": ".cr Projectfile",
    "cs": ".cs",
    "css": ".css .scss",
    "csv": ".csv",
    "cuda": ".cu .cuh",
    "cython": ".pyx .pxd .pxi",
    "d": ".d",
    "dart": ".dart",
    "dhall": ".dhall",
    "diff": ".diff .patch",
    "docker": "*Dockerfile*",
    "elisp": ".el",
    "elixir": ".ex .exs .eex .heex .leex",
    "elm": ".elm",
    "erb": ".erb",
    "erlang": ".erl .hrl",
    "fish": ".fish",
    "fortran": ".f .F .f77 .F77 .f90 .F90 .f95 .F95 .pfo",
    "fsharp": ".fs .fsi .fsx",
    "glsl": ".glsl .vert .frag .geom .comp",
    "go": ".go",
    "gradle": ".gradle .gradle.kts",
    "graphql": ".graphql .graphqls .gql",
    "groovy": ".groovy .gradle",
    "h": ".h .hh .hpp .hxx",
    "haml": ".haml",
    "haskell": ".hs .lhs .hsc .c2hs .cpphs",
    "html": ".html .htm .ejs",
    "ini": ".ini .cfg",
    "java": ".java .jsp .jspx .properties",
    "jinja": ".j2 .jinja .jinja2",
    "js": ".js .jsx .mjs .cjs .vue",
    "json": ".json composer.lock",
    "jsonl": ".jsonl .ndjson",
    "julia": ".jl",
    "jupyter": ".ipynb .jpynb",
    "kotlin": ".kt .kts",
    "less": ".less",
    "lisp": ".lisp .lsp .el .jl .sc .scm",
    "lock": ".lock package-lock.json",
    "log": ".log",
    "lua": ".lua",
    "make": ".mk .mak Makefile* makefile* GNUmakefile* gnumakefile*",
    "matlab": ".m",
    "md": ".md .markdown .mdown .mkdn .mkd .mdx",
    "meson": "meson.build meson_options.txt meson.options",
    "nim": ".nim .nimble .nims .nimf",
    "nix": ".nix",
    "objc": ".m .h",
    "objcpp": ".mm .h",
    "ocaml": ".ml .mli .mll .mly",
    "org": ".org .org_archive",
    "pascal": ".pas .dpr .lpr .pp .inc",
    "perl": ".pl .pm .t .perl .PL .plh .plx",
    "php": ".php .php3 .php4 .php5 .phtml",
    "po": ".po",
    "prolog": ".pl .pro .prolog .P",
    "protobuf": ".proto",
    "ps": ".ps1 .psm1 .psd1 .ps1xml .cdxml",
    "py": ".py .pyi",
    "r": ".r .R .Rmd .Rnw",
    "rst": ".rst",
    "ruby": ".rb .rbw .gemspec .irbrc config.ru Gemfile Rakefile",
    "rust": ".rs",
    "sass": ".sass .scss",
    "scala": ".scala .sbt",
    "sh": ".sh .bash .zsh .ksh .csh .tcsh .bashrc .kshrc .cshrc .zshrc .bash_profile .bash_login .bash_logout"
    " .profile .login .logout .zprofile .zshenv .zlogin .zlogout .tcshrc bashrc bash_login bash_logout"
    " bash_profile profile zshrc zshenv zprofile zlogin zlogout",
    "sml": ".sml .sig",
    "solidity": ".sol",
    "sql": ".sql .psql",
    "stylus": ".styl",
    "svelte": ".svelte",
    "svg": ".svg",
    "swift": ".swift",
    "tcl": ".tcl",
    "tex": ".tex .ltx .cls .sty .bib .dtx .ins",
    "tf": ".tf .tfvars .tf.json",
    "thrift": ".thrift",
    "toml": ".toml Cargo.lock",
    "ts": ".ts .tsx .mts .cts",
    "twig": ".twig",
    "txt": ".txt",
    "vala": ".vala",
    "vb": ".vb",
    "verilog": ".v .vh .sv .svh",
    "vhdl": ".vhd .vhdl",
    "vim": ".vim .vimrc vimrc",
    "vue": ".vue",
    "xml": ".xml .xsd .xsl .xslt .dtd .rng .sch .xhtml .xjb .xml.dist",
    "yaml": ".yaml .yml",
    "zig": ".zig",
}
_ALIASES = {
    "bash": "sh",
    "c++": "cpp",
    "c#": "cs",
    "csharp": "cs",
    "cxx": "cpp",
    "dockerfile": "docker",
    "f#": "fsharp",
    "golang": "go",
    "hs": "haskell",
    "javascript": "js",
    "jsx": "js",
    "kt": "kotlin",
    "makefile": "make",
    "markdown": "md",
    "ml": "ocaml",
    "mjs": "js",
    "pl": "perl",
    "powershell": "ps",
    "ps1": "ps",
    "proto": "protobuf",
    "pyi": "py",
    "python": "py",
    "rb": "ruby",
    "rs": "rust",
    "scss": "sass",
    "shell": "sh",
    "terraform": "tf",
    "text": "txt",
    "tsx": "ts",
    "typescript": "ts",
    "yml": "yaml",
    "zsh": "sh",
}


def type_names() -> list[str]:
    """Return the names of the types, without aliases."""
    return sorted(_TYPES)


def compile_types(names: Sequence[str]) -> Callable[[str], bool]:
    """Make a test for the names of files.

    Args:
        names: At least one type, such as `py`; case and a leading dot do not matter.

    Returns:
        A test whether a file's name (without directories) is of one of the types.

    Raises:
        InvalidArgumentError: `invalid_argument`: there is no such type; the message names the nearest.
    """
    suffixes: list[str] = []
    exact: set[str] = set()
    starts: list[str] = []
    parts: list[str] = []
    for name in names:
        for each in _TYPES[_known(name)].split():
            if each.startswith("*"):
                parts.append(each.strip("*"))
            elif each.endswith("*"):
                starts.append(each[:-1])
            elif each.startswith("."):
                suffixes.append(each)
            else:
                exact.add(each)
    ends, begins = tuple(suffixes), tuple(starts)

    def is_of_type(name: str) -> bool:
        return (
            name.endswith(ends)
            or name in exact
            or name.startswith(begins)
            or any(part in name for part in parts)
        )

    return is_of_type


def _known(name: str) -> str:
    asked = name.strip().lower().removeprefix("*").removeprefix(".")
    asked = _ALIASES.get(asked, asked)
    if asked in _TYPES:
        return asked
    from difflib import get_close_matches  # noqa: PLC0415 - not part of the price of importing agentfs

    near = get_close_matches(asked, [*_TYPES, *_ALIASES], n=3, cutoff=0.5)
    hint = f"Nearest: {', '.join(near)}. " if near else ""
    raise InvalidArgumentError(
        f"There is no file type {name!r}.",
        hint=f'{hint}Leave type out, or pass glob, for example glob="*.py".',
        details={"type": name, "nearest": near, "types": type_names()},
    )
