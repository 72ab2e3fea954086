"""The file types for `grep(type=…)`: globs for each type, with the names that ripgrep uses."""

import re
from collections.abc import Callable, Sequence

from agentfs.base.advice import Advice, FirstOf, ParameterName, Retry
from agentfs.base.visible import literal
from agentfs.errors import InvalidArgumentError
from agentfs.text.nearest import closest
from agentfs.tree.globs import compile_globs


def _table(text: str) -> dict[str, str]:
    pairs = (entry.split(":") for entry in text.split(";"))
    return {name.strip(): " ".join(value.split()) for name, value in pairs}


# Types of `rg --type-list` (ripgrep 15) that models ask for. `.x` means `*.x`; `=.x` means the name `.x`.
TYPES = _table("""
asm: .S .asm .s; bat: .bat .cmd; c: .c .h .H .c.in .h.in .H.in .cats .C .C.in; clojure: .clj .cljc .cljs
.cljx; cmake: .cmake CMakeLists.txt; config: .cfg .conf .config .ini; cpp: .C .h .H .C.in .h.in .H.in .cpp
.hpp .cpp.in .hpp.in .cxx .hxx .cxx.in .hxx.in .cc .cc.in .hh .hh.in .inl; cs: .cs; css: .css .scss; dart:
.dart; diff: .diff .patch; docker: *Dockerfile*; elixir: .eex .ex .exs .heex .leex .livemd; erlang: .erl
.hrl; fsharp: .fs .fsi .fsx; go: .go; gradle: .gradle .gradle.kts gradle-wrapper.* gradle.properties gradlew
gradlew.bat; graphql: .graphql .graphqls .gql; groovy: .gradle .groovy; h: .h .hh .hpp .hxx; haskell: .c2hs
.cpphs .hs .hsc .lhs; html: .ejs .htm .html; java: .java .jsp .jspx .properties; js: .cjs
.js .jsx .mjs .vue; json: .json .sarif composer.lock; jupyter: .ipynb .jpynb; kotlin: .kt .kts; lua: .lua;
make: .mak .mk [Mm]akefile* [Gg][Nn][Uu]?akefile*; md: .markdown .md .mdown .mdwn .mdx .mkd .mkdn; nix:
.nix; objc: .h .m; ocaml: .ml .mli .mll .mly; perl: .PL .perl .pl .plh .plx .pm .t; php: .php .php3 .php4
.php5 .php7 .php8 .pht .phtml; proto: .proto; ps: .cdxml .ps1 .ps1xml .psd1 .psm1; py: .py .pyi; r: .R .Rmd
.Rnw .r .rmd .rnw; rst: .rst; ruby: .gemspec .rake .rb .rbw =.irbrc Gemfile Rakefile config.ru; rust: .rs;
sass: .sass .scss; scala: .sbt .scala; sh: .bash .bashrc .csh .cshrc .env .ksh .kshrc .sh .tcsh .zsh
=.bash_login =.bash_logout =.bash_profile =.bashrc =.cshrc =.env =.kshrc =.login =.logout =.profile =.tcshrc
=.zlogin =.zlogout =.zprofile =.zshenv =.zshrc bash_login bash_logout bash_profile bashrc profile zlogin
zlogout zprofile zshenv zshrc; solidity: .sol; sql: .psql .sql; svelte: .svelte .svelte.ts; swift: .swift;
tex: .bib .cls .dtx .ins .ltx .sty .tex; tf: .terraform.lock.hcl .terraformrc .tf .tf.json .tfrc .tfvars
.tfvars.json terraform.rc; toml: .toml Cargo.lock; ts: .cts .mts .ts .tsx; txt: .txt; vue: .vue; xml: .dtd
.rng .sch .xhtml .xjb .xml .xml.dist .xsd .xsl .xslt; yaml: .yaml .yml; zig: .zig; zsh: .zsh =.zlogin
=.zlogout =.zprofile =.zshenv =.zshrc zlogin zlogout zprofile zshenv zshrc
""")

_ALIASES = _table("""
bash: sh; c++: cpp; c#: cs; cxx: cpp; dockerfile: docker; f#: fsharp; golang: go; ini: config; javascript:
js; jsx: js; kt: kotlin; makefile: make; markdown: md; mjs: js; pl: perl; powershell: ps; protobuf: proto;
ps1: ps; pyi: py; python: py; rb: ruby; rs: rust; scss: sass; shell: sh; terraform: tf; text: txt; tsx: ts;
typescript: ts; yml: yaml
""")


_LISTED = re.compile(r"[^\s,|]+")


def compile_types(names: Sequence[str]) -> Callable[[str], bool]:
    """Return a test that is True for the names of files of these types; a text may list several.

    A type that begins with `!` excludes its files. If a file has several of the types, the last one decides.

    Raises:
        InvalidArgumentError: If a type is unknown; the message names similar ones.
    """
    listed = [each for name in names for each in _LISTED.findall(name)]
    globs = [
        f"{'!' * name.startswith('!')}{'*' * each.startswith('.')}{each.removeprefix('=')}"
        for name in dict.fromkeys(reversed(listed))
        for each in TYPES[_find(name.removeprefix("!"))].split()
    ]
    return compile_globs(globs[::-1])


def _find(name: str) -> str:
    """Return the type of a name."""
    key = name.strip().lower().removeprefix("*").removeprefix(".")
    key = _ALIASES.get(key, key)
    if key in TYPES:
        return key
    near = closest(key, [*TYPES, *_ALIASES], 3, 0.5)
    advice: str = Advice("Leave ", ParameterName("type"), " out.")
    if near:
        advice = f"Nearest: {', '.join(near)}."
    elif key.isalnum() and len(key) < 20:
        by_name = Advice("To choose files by name, ", Retry({"glob": f"*.{key}"}, ("type",)), ".")
        advice = FirstOf(by_name, advice)
    raise InvalidArgumentError(
        f"There is no file type {literal(name)}.",
        hint=advice,
        details={"type": name[:200], "nearest": near, "types": sorted(TYPES)},
    )
