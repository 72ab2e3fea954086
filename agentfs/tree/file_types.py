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


# The types of `rg --type-list` (ripgrep 15) and a few more. `.x` means `*.x`; `=.x` means the name `.x`.
_TYPES = _table("""
ada: .adb .ads; agda: .agda .lagda; aidl: .aidl; alire: alire.toml; amake: .bp .mk; asciidoc: .adoc .asc
.asciidoc; asm: .S .asm .s; asp: .ascx .ascx.cs .ascx.vb .asp .aspx .aspx.cs .aspx.vb; ats: .ats .dats .hats
.sats; avro: .avdl .avpr .avsc; awk: .awk; bat: .bat .cmd; batch: .bat; bazel: .BUILD .bazel .bazelrc .bzl
BUILD MODULE.bazel WORKSPACE WORKSPACE.bazel WORKSPACE.bzlmod MODULE; bitbake: .bb .bbappend .bbclass .conf
.inc; boxlang: .bx .bxm .bxs; brotli: .br; buildstream: .bst; bzip2: .bz2 .tbz2; c: .c .h .H .c.in .h.in
.H.in .cats .C .C.in; cabal: .cabal; candid: .did; carp: .carp; cbor: .cbor; ceylon: .ceylon; cfml: .cfc
.cfm; clojure: .clj .cljc .cljs .cljx; cmake: .cmake CMakeLists.txt; cmd: .bat .cmd; cml: .cml; coffeescript:
.coffee; config: .cfg .conf .config .ini; container: *Containerfile* *Dockerfile*; coq: .v; cpp: .C .h .H
.C.in .h.in .H.in .cpp .hpp .cpp.in .hpp.in .cxx .hxx .cxx.in .hxx.in .cc .cc.in .hh .hh.in .inl; creole:
.creole; crystal: .cr .ecr Projectfile shard.yml; cs: .cs; csharp: .cs; cshtml: .cshtml; csproj: .csproj;
css: .css .scss; csv: .csv; cuda: .cu .cuh; cython: .pxd .pxi .pyx; d: .d; dart: .dart; devicetree: .dts
.dtsi .dtso; dhall: .dhall; diff: .diff .patch; dita: .dita .ditamap .ditaval; docker: *Dockerfile*;
dockercompose: docker-compose.*.yml docker-compose.yml; dts: .dts .dtsi; dvc: .dvc Dvcfile; ebuild: .ebuild
.eclass; edn: .edn; elisp: .el; elixir: .eex .ex .exs .heex .leex .livemd; elm: .elm; erb: .erb; erlang: .erl
.hrl; fennel: .fnl; fidl: .fidl; fish: .fish; flatbuffers: .fbs; fortran: .F .F77 .F90 .F95 .f .f77 .f90 .f95
.pfo; fsharp: .fs .fsi .fsx; fut: .fut; gap: .g .gap .gd .gi .tst; gdscript: .gd; gleam: .gleam; glsl: .glsl
.vert .frag .geom .comp; gn: .gn .gni; go: .go; gprbuild: .gpr; gradle: .gradle .gradle.kts gradle-wrapper.*
gradle.properties gradlew gradlew.bat; graphql: .graphql .graphqls .gql; groovy: .gradle .groovy; gzip: .gz
.tgz; h: .h .hh .hpp .hxx; haml: .haml; hare: .ha; haskell: .c2hs .cpphs .hs .hsc .lhs; hbs: .hbs; hs: .hs
.lhs; html: .ejs .htm .html; hurl: .hurl; hy: .hy; idris: .idr .lidr; ini: .ini .cfg; janet: .janet; java:
.java .jsp .jspx .properties; jinja: .j2 .jinja .jinja2; jl: .jl; js: .cjs .js .jsx .mjs .vue; json: .json
.sarif composer.lock; jsonl: .jsonl .ndjson; julia: .jl; jupyter: .ipynb .jpynb; k: .k; kconfig: Kconfig
Kconfig.*; kotlin: .kt .kts; lean: .lean; less: .less; license: *.LICENCE* *.LICENSE* *-LICENCE* *-LICENSE*
AGPL-*[0-9]* APACHE-*[0-9]* BSD-*[0-9]* CC-BY-* COPYING COPYING.* COPYING-* COPYRIGHT COPYRIGHT.* COPYRIGHT-*
EULA EULA.* EULA-* GFDL-*[0-9]* GNU-*[0-9]* GPL-*[0-9]* LGPL-*[0-9]* LICENCE LICENSE LICENCE.* LICENCE-*
LICENSE.* LICENSE-* MIT-*[0-9]* MPL-*[0-9]* NOTICE NOTICE.* NOTICE-* OFL-*[0-9]* PATENTS PATENTS.* PATENTS-*
UNLICENCE UNLICENSE UNLICENCE.* UNLICENCE-* UNLICENSE.* UNLICENSE-* agpl.* agpl-* gpl.* gpl-* lgpl.* lgpl-*
licence license licence.* license.*; lilypond: .ily .ly; lisp: .el .jl .lisp .lsp .sc .scm; llvm: .ll; lock:
.lock package-lock.json; log: .log; lua: .lua; lz4: .lz4; lzma: .lzma; m4: .ac .m4; make: .mak .mk Makefile.*
GNUmakefile GNumakefile GnUmakefile Gnumakefile gNUmakefile gNumakefile gnUmakefile gnumakefile
GNUmakefile.am GNumakefile.am GnUmakefile.am Gnumakefile.am gNUmakefile.am gNumakefile.am gnUmakefile.am
gnumakefile.am GNUmakefile.in GNumakefile.in GnUmakefile.in Gnumakefile.in gNUmakefile.in gNumakefile.in
gnUmakefile.in gnumakefile.in Makefile makefile Makefile.am makefile.am Makefile.in makefile.in Makefile*
GNUmakefile*; mako: .mako .mao; man: *.[0-9][cEFMmpSx] *.[0-9lnpx]; markdown: .markdown .md .mdown .mdwn .mdx
.mkd .mkdn; matlab: .m; md: .markdown .md .mdown .mdwn .mdx .mkd .mkdn; meson: meson.build meson.options
meson_options.txt; minified: .min.css .min.html .min.js; mint: .mint; mk: mkfile; ml: .ml; mojo: .mojo;
motoko: .mo; msbuild: .csproj .fsproj .proj .props .sln .slnf .targets .vcxproj; nim: .nim .nimble .nimf
.nims; nix: .nix; objc: .h .m; objcpp: .h .mm; ocaml: .ml .mli .mll .mly; org: .org .org_archive; pants:
BUILD; pascal: .dpr .inc .lpr .pas .pp; pdf: .pdf; perl: .PL .perl .pl .plh .plx .pm .t; php: .php .php3
.php4 .php5 .php7 .php8 .pht .phtml; pkgbuild: PKGBUILD; po: .po; pod: .pod; postscript: .eps .ps; prolog: .P
.pl .pro .prolog; proto: .proto; protobuf: .proto; ps: .cdxml .ps1 .ps1xml .psd1 .psm1; puppet: .epp .erb .pp
.rb; purs: .purs; py: .py .pyi; python: .py .pyi; qmake: .prf .pri .pro; qml: .qml; qrc: .qrc; qui: .ui; r:
.R .Rmd .Rnw .r .rmd .rnw; racket: .rkt; raku: .p6 .pl6 .pm6 .raku .rakudoc .rakumod .rakutest; rdoc: .rdoc;
readme: *README README*; reasonml: .re .rei; red: .r .red .reds; rescript: .res .resi; robot: .robot; rocq:
.v; rst: .rst; ruby: .gemspec .rake .rb .rbw =.irbrc Gemfile Rakefile config.ru; rust: .rs; sass: .sass
.scss; scala: .sbt .scala; scdoc: .scd .scdoc; seed7: .s7i .sd7; sh: .bash .bashrc .csh .cshrc .env .ksh
.kshrc .sh .tcsh .zsh =.bash_login =.bash_logout =.bash_profile =.bashrc =.cshrc =.env =.kshrc =.login
=.logout =.profile =.tcshrc =.zlogin =.zlogout =.zprofile =.zshenv =.zshrc bash_login bash_logout
bash_profile bashrc profile zlogin zlogout zprofile zshenv zshrc; slim: .skim .slim .slime; smarty: .tpl;
sml: .sig .sml; solidity: .sol; soy: .soy; spark: .spark; spec: .spec; sql: .psql .sql; ssa: .ssa; stylus:
.styl; sv: .h .sv .svh .v .vg; svelte: .svelte .svelte.ts; svg: .svg; swift: .swift; swig: .def .i; systemd:
.automount .conf .device .link .mount .path .scope .service .slice .socket .swap .target .timer; taskpaper:
.taskpaper; tcl: .tcl; tex: .bib .cls .dtx .ins .ltx .sty .tex; texinfo: .texi; textile: .textile; tf:
.terraform.lock.hcl .terraformrc .tf .tf.json .tfrc .tfvars .tfvars.json terraform.rc; thrift: .thrift; toml:
.toml Cargo.lock; ts: .cts .mts .ts .tsx; twig: .twig; txt: .txt; typescript: .cts .mts .ts .tsx; typoscript:
.ts .typoscript; typst: .typ; usd: .usd .usda .usdc; v: .v .vsh; vala: .vala; vb: .vb; vcl: .vcl; verilog:
.sv .svh .v .vh; vhdl: .vhd .vhdl; vim: .vim =.gvimrc =.vimrc _gvimrc _vimrc gvimrc vimrc; vimscript: .vim
=.gvimrc =.vimrc _gvimrc _vimrc gvimrc vimrc; vue: .vue; webidl: .idl .webidl .widl; wgsl: .wgsl; wiki:
.mediawiki .wiki; xml: .dtd .rng .sch .xhtml .xjb .xml .xml.dist .xsd .xsl .xslt; xz: .txz .xz; yacc: .y;
yaml: .yaml .yml; yang: .yang; z: .Z; zig: .zig; zsh: .zsh =.zlogin =.zlogout =.zprofile =.zshenv =.zshrc
zlogin zlogout zprofile zshenv zshrc; zstd: .zst .zstd
""")

_ALIASES = _table("""
bash: sh; c++: cpp; c#: cs; cxx: cpp; dockerfile: docker; f#: fsharp; golang: go; javascript: js; jsx: js;
kt: kotlin; makefile: make; mjs: js; pl: perl; powershell: ps; ps1: ps; pyi: py; rb: ruby; rs: rust; scss:
sass; shell: sh; terraform: tf; text: txt; tsx: ts; yml: yaml
""")


_LISTED = re.compile(r"[^\s,|]+")
_NAME_SUFFIX = re.compile(r"\w{1,20}")


def type_names() -> list[str]:
    """Return the names of the types, without aliases."""
    return sorted(_TYPES)


def type_globs() -> dict[str, list[str]]:
    """Return the globs of the names of each type."""
    return {name: [_glob(each) for each in _TYPES[name].split()] for name in type_names()}


def _glob(text: str) -> str:
    return f"{'*' * text.startswith('.')}{text.removeprefix('=')}"


def compile_types(names: Sequence[str]) -> Callable[[str], bool]:
    """Return a test that is True for the names of files of these types; a text may list several.

    A type that begins with `!` excludes its files. If a file has several of the types, the last one decides.

    Raises:
        InvalidArgumentError: If a type is unknown; the message names similar ones.
    """
    listed = [each for name in names for each in _LISTED.findall(name)]
    globs = [
        f"{'!' * name.startswith('!')}{_glob(each)}"
        for name in dict.fromkeys(reversed(listed))
        for each in _TYPES[_find(name.removeprefix("!"), alone=listed == [name.strip("!")])].split()
    ]
    return compile_globs(globs[::-1])


def _find(name: str, *, alone: bool) -> str:
    """Return the type of a name; `alone` if the call lists no other type."""
    key = name.strip().lower().removeprefix("*").removeprefix(".")
    key = _ALIASES.get(key, key)
    if key in _TYPES:
        return key
    near = closest(key, [*_TYPES, *_ALIASES], 3, 0.5)
    advice: str = Advice("Leave ", ParameterName("type"), " out.")
    if near:
        nearest = f"Nearest: {', '.join(near)}"
        advice = Advice(f"{nearest}: ", Retry({"type": near[0]}), ".") if alone else f"{nearest}."
    elif alone and _NAME_SUFFIX.fullmatch(key):
        by_name = Advice("To choose files by name, ", Retry({"glob": f"*.{key}"}, ("type",)), ".")
        advice = FirstOf(by_name, advice)
    raise InvalidArgumentError(
        f"There is no file type {literal(name)}.",
        hint=advice,
        details={"type": name[:200], "nearest": near, "types": type_names()},
    )
