"""The manners of the command line: help, suggestions, quiet and verbose, colours, completion."""

import io
import os
import pty
import re
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import fields
from pathlib import Path

import pytest
import typer.main
from PIL import Image

from sightline import cli, console, verbosity
from sightline.backbone_names import NAMES as BACKBONES
from sightline.commands import completions
from sightline.progress import Progress
from sightline.reproduction.overview import Overview, RowState
from sightline.reproduction.rows import Row
from sightline.service.limits import ServiceLimits
from sightline.service.logs import log_config
from sightline.settings import Settings

ESCAPE = "\x1b"
PLAIN = {
    key: value
    for key, value in os.environ.items()
    if key not in ("NO_COLOR", "FORCE_COLOR", "TERM") and not key.startswith("SIGHTLINE_")
} | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; gives its exit code, its data and its words."""
    for name in ("NO_COLOR", "FORCE_COLOR", *(n for n in os.environ if n.startswith("SIGHTLINE_"))):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["sightline", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return (end.value.code, *capsys.readouterr())

    yield run
    verbosity.choose_verbosity(verbosity.Verbosity.USUAL)


@pytest.fixture
def article(tmp_path, monkeypatch):
    Image.new("RGB", (64, 64), "teal").save(tmp_path / "teal.jpg")
    (tmp_path / "article.md").write_text("# Walls\n\nThe wall is teal.\n\n![](teal.jpg)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "article.md"


def commands(group=None, path=()):
    """Every command that can be run, with the words that lead to it."""
    group = group or typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


# ---- help


def test_help_groups_the_commands_by_task(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = run("--help")
    assert code == 0
    panels = re.findall(r"╭─ (.*?) ─", out)
    assert panels == [
        "Options", "Link documents", "Train and measure", "Corpora and features",
        "Serve and look after",
    ]  # fmt: skip
    for name, command in typer.main.get_command(cli.app).commands.items():
        assert f"│ {name} " in out
        line, *_ = command.help.split("\n\n")
        assert "\n" not in line and len(line) <= 64  # one line at 80 columns
        assert command.epilog


def test_the_help_of_train_has_panels_and_leaves_out_what_goes_without_saying(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = run("train", "--help")
    for panel in ("What is read", "What is written", "Encoders", "Learning", "Words"):
        assert f"╭─ {panel} ─" in out
    assert "Usage: sightline train [OPTIONS] CORPUS" in out
    assert "<bool>" not in out and "SIGHTLINE_TRAIN" not in out and "--quiet" not in out
    assert "SIGHTLINE_MAX_BODY" in run("serve", "--help")[1]


def example_lines(command):
    return re.findall(r"^(?:torchrun .* -m )?(sightline .*)$", command.epilog or "", re.MULTILINE)


def test_every_example_can_be_parsed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = typer.main.get_command(cli.app)
    seen = 0
    for path, command in commands():
        lines = example_lines(command)
        assert 1 <= len(lines) <= 4, path
        for line in lines:
            words = shlex.split(line.partition(">")[0])[1:]
            for word in words:
                place = tmp_path / word
                if not word.startswith("-"):
                    place.touch() if place.suffix else place.mkdir(parents=True, exist_ok=True)
            context = root.make_context("sightline", list(words))
            name, found, rest = root.resolve_command(context, words)
            while hasattr(found, "commands"):
                context = found.make_context(name, list(rest), parent=context)
                name, found, rest = found.resolve_command(context, rest)
            assert found.name == path[-1]
            found.make_context(name, rest, parent=context)
            seen += 1
    assert seen >= 40


def test_no_options_of_a_command_clash():
    seen = 0
    for path, command in commands():
        names = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
        assert len(names) == len(set(names)), path
        assert {"-q", "--quiet", "-v", "--verbose"} <= set(names)
        for one in command.params:
            # Brackets would be taken for markup.
            assert one.help and "[" not in one.help, (path, one.name)
        assert "[" not in command.help + command.epilog, path
        seen += 1
    assert seen == 23


def test_plain_help_keeps_the_lines_of_examples():
    environment = {**PLAIN, "TYPER_USE_RICH": "0", "COLUMNS": "60"}
    command = [sys.executable, "-m", "sightline", "link", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "sightline link article.html -o article.links.html" in lines


def test_no_command_loads_another_nor_pydantic(tmp_path):
    code = (
        "import sys; sys.argv = ['sightline', 'link', 'nowhere']\n"
        "from sightline.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=PLAIN)
    loaded = done.stdout.split()
    assert "sightline.commands.link" in loaded and "no such file or folder" in done.stderr
    unwanted = {"pydantic", "rich", "numpy", "tomllib"}
    unwanted |= {"sightline.commands.train", "sightline.commands.serve"}
    assert not unwanted & set(loaded)


# ---- did you mean


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lnk"], "No such command 'lnk'. Did you mean 'link'?"),
        (["build", "mscoc"], "No such command 'mscoc'. Did you mean 'mscoco'?"),
        (["link", "--polcy", "dense", "."], "No such option: --polcy. Did you mean '--policy'?"),
        (["link", ".", "--zzz"], "No such option: --zzz."),
        (
            ["link", ".", "--policy", "asignment"],
            "--policy is 'asignment'; expected assignment, dense, top-k, threshold or mmc4. "
            "Did you mean 'assignment'?",
        ),
        (["link", ".", "--policy", "xyz"], "top-k, threshold or mmc4."),
        (["train", ".", "-o", "m", "--similarity", "ap"], "Did you mean 'AP'?"),
        (["link", ".", "--model", "defalt"], "There is no model 'defalt'. Did you mean 'default'?"),
        (["evaluate", "randm", "."], "There is no model 'randm'. Did you mean 'random'?"),
        (["features", ".", "-o", "f", "--backbone", "densenet"], "Did you mean 'densenet169'?"),
        (["reproduce", "mscocoo", "-o", "r"], "Did you mean 'mscoco'?"),
        (["serve", "--port", "99999"], "--port is 99999; expected 0 to 65535."),
        (["link", ".", "--threshold", "much"], "--threshold is 'much'; expected a number."),
        (
            ["train", ".", "-o", "m", "--epochs", "2.5"],
            "--epochs is '2.5'; expected a whole number.",
        ),
        (["link", ".", "--max-links", "0"], "--max-links is '0'; expected all, half or a number"),
        (["link", ".", "--max-links", "9" * 19], "9'; expected all, half or a number"),
        (["train", "."], "Missing option '--output' / '-o'."),
        (["link"], "Missing argument 'INPUT'."),
        (["link", "-q", "-v", "."], "--quiet and --verbose contradict each other"),
    ],
)
def test_wrong_names_and_values_are_one_sentence(run, arguments, sentence):
    code, out, words = run(*arguments)
    assert code == 2 and out == ""
    assert words.splitlines()[-1].startswith("Error: ")
    assert sentence in words.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("train . -o m --epochs 0", "--epochs is 0; it must be at least 1."),
        ("train . -o m --layers 3", "--layers is 3; expected 1 or 2."),
        ("train . -o m --negative-documents 0", "--negative-documents is 0; it must be"),
        ("train . -o m --class-words --finetune-images", "--class-words needs a backbone"),
        ("reproduce . -o x --dimension 0", "--dimension is 0; it must be at least 1."),
        ("reproduce . -o x --rows Foo", "There is no row 'Foo'"),
        ("link article.md -o y.foo", "links are not written as .foo"),
        ("link article.md -o y.annotations", "links are not written as .annotations"),
        ("link article.md article.md teal.md --format html", "Pages need a place"),
        ("link . --workers 2", "Shards need a folder"),
        ("pairs article.md -o y.foo", "its name does not tell the format"),
        ("alt article.md -o y.pdf", "a report is not written as .pdf"),
        ("convert documents.jsonl y.foo --to mmc4", "cannot be written as mmc4"),
        ("evaluate object-detection documents.jsonl --split all", "compares word vectors"),
        ("build pages . -o c --validation 2", "The shares of validation (2)"),
        ("duplicates documents.jsonl --threshold 65", "--threshold is 65; expected 0 to 64."),
    ],
)
def test_what_does_not_fit_is_wrong_usage(run, article, arguments, sentence):
    (article.parent / "teal.md").write_text("Teal.")
    record = '{"id": "a", "sentences": ["A."], "images": ["teal.jpg"], "links": [[0, 0]]}'
    (article.parent / "documents.jsonl").write_text(record)
    code, out, words = run(*arguments.split())
    assert (code, out) == (2, "") and sentence in words.splitlines()[-1]


def test_options_without_an_effect_are_told(run, article):
    record = '{"id": "a", "sentences": ["A."], "images": ["teal.jpg"]}'
    (article.parent / "documents.jsonl").write_text(record)
    arguments = ("--unit", "paragraph", "--fetch", "--engine-address", "x")
    code, _, words = run("link", "documents.jsonl", *arguments)
    assert code == 0
    assert "--unit is for articles, and has no effect on corpora." in words
    assert "--fetch is for articles, and has no effect on corpora." in words
    assert "--engine-address is for shards, and has no effect on other inputs." in words
    code, _, words = run("link", article, "--split", "test")
    assert "--split is for corpora, and has no effect on articles." in words
    assert "--unit" not in words and "--fetch" not in words


@pytest.mark.parametrize(
    ("command", "of", "prefix"),
    [("train", Settings, ""), ("reproduce", Settings, ""), ("serve", ServiceLimits, "max_")],
)
def test_defaults_of_options_are_those_of_python(command, of, prefix):
    defaults = {field.name: field.default for field in fields(of)}
    options = typer.main.get_command(cli.app).commands[command].params
    seen = {
        name: (option.default, defaults[name])
        for option in options
        if (name := option.name.removeprefix(prefix)) in defaults
    }
    assert len(seen) > 4
    assert {name: one for name, one in seen.items() if one[0] != one[1]} == {}


def test_a_file_that_does_not_exist_is_told_before_anything_is_loaded(run, article):
    code, _, words = run("link", "artcle.md")
    assert code == 1
    place = f"artcle.md: no such file or folder in {article.parent}."
    assert words == f"Error: {place} Did you mean 'article.md'?\n"
    assert "Did you mean 'article.md'?" in run("corpus", "artcle.md")[2]


def test_a_file_to_write_among_those_to_read_is_told(run, article):
    code, _, words = run("link", article, "out.html")
    assert code == 1 and words.endswith("To write to it: -o out.html.\n")
    # Not where it is no form of links, or stands alone, or another input is the missing one.
    for inputs in (
        [article, "out.md"],
        ["out.html"],
        ["gone.html", article],
        ["gone.md", "a.html"],
    ):
        assert "To write to it" not in run("link", *inputs)[2]


def test_without_arguments_the_help_is_shown(run):
    code, out, words = run()
    assert code == 2 and "Usage: sightline" in out and words == ""


def test_completed_names_are_those_that_exist():
    assert completions.backbones("") == list(BACKBONES)
    assert completions.splits("a") == ["all"] and "all" not in completions.new_splits("")


# ---- quiet and verbose


def test_quiet_leaves_the_data_and_errors_alone(run, article, monkeypatch):
    code, out, words = run("link", article, "-o", "links.jsonl")
    usual = (Path("links.jsonl").read_bytes(), out)
    assert code == 0
    code, out, words = run("link", article, "--quiet", "-o", "links.jsonl")
    assert (code, words) == (0, "")
    assert (Path("links.jsonl").read_bytes(), out) == usual
    code, _, words = run("-q", "link", "nowhere")
    assert code == 1 and words.startswith("Error: nowhere")
    monkeypatch.setenv("SIGHTLINE_QUIET", "1")
    code, _, words = run("link", article, "--policy", "densely")
    assert code == 2 and words.startswith("Error: --policy is 'densely'")


def test_verbose_tells_settings_steps_and_times(run, article, monkeypatch):
    monkeypatch.setenv("SIGHTLINE_LINK_MAX_LINKS", "half")
    code, out, words = run("link", article, "-v", "--policy", "dense")
    assert code == 0 and "teal" in out
    assert "--policy = dense\n" in words and "SIGHTLINE_LINK_MAX_LINKS = half\n" in words
    assert re.search(r"^model default opened: \d+\.\d\d s$", words, re.MULTILINE)
    assert re.search(r"^sightline link: .* s of CPU time", words, re.MULTILINE)
    assert run("link", article, "--policy", "dense")[1:] == (out, "")


def test_the_command_line_goes_before_the_environment(run, monkeypatch):
    monkeypatch.setenv("SIGHTLINE_QUIET", "1")
    _, _, words = run("-v", "corpus", "nowhere")
    assert words.startswith("sightline 0.") and "\nCORPUS = nowhere\n" in words


def test_progress_is_silent_when_quiet(capsys, monkeypatch):
    monkeypatch.setattr("sightline.progress._SILENT_FOR", 0)
    monkeypatch.setattr("sightline.progress._LINE_EVERY", 0)
    with Progress("work", 2, "units") as progress:
        progress.advance()
    assert "work: 50 %" in re.sub(" +", " ", capsys.readouterr().err)
    verbosity.choose_verbosity(verbosity.Verbosity.QUIET)
    with Progress("work", 2, "units") as progress:
        progress.advance()
    verbosity.choose_verbosity(verbosity.Verbosity.USUAL)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("level", [verbosity.Verbosity.USUAL, verbosity.Verbosity.QUIET])
def test_the_grid_and_the_service_say_as_much_as_they_are_told_to(level):
    stream, quiet = io.StringIO(), level is verbosity.Verbosity.QUIET
    verbosity.choose_verbosity(level)
    try:
        with Overview([RowState(Row("Random", None), 0, "done")], 1, stream) as overview:
            overview.show()
        levels = {logger["level"] for logger in log_config()["loggers"].values()}
    finally:
        verbosity.choose_verbosity(verbosity.Verbosity.USUAL)
    assert (stream.getvalue() == "") is quiet
    assert levels == ({"ERROR"} if quiet else {"INFO"})


# ---- colours


def on_a_terminal(arguments, **environment):
    """What a command writes where standard output and error are a terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(environment)
        sys.argv = ["sightline", *arguments]
        # Not those that pytest took.
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        try:
            cli.main()
        except SystemExit as end:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
        finally:
            os._exit(99)
    written = b""
    try:
        while part := os.read(terminal, 2**16):
            written += part
    except OSError:  # how Linux tells that the other side was closed
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) in (0, 2)
    return written.decode()


@pytest.mark.parametrize(
    "arguments", [["link", ".", "--policy", "x"], ["evaluate", "--help"]], ids=["error", "help"]
)
def test_colours_on_terminals_alone(arguments, run, monkeypatch):
    colourful = on_a_terminal(arguments, TERM="xterm-256color")
    assert ESCAPE in colourful and ("Error:" in colourful or "Usage:" in colourful)
    assert ESCAPE not in on_a_terminal(arguments, TERM="dumb")
    assert ESCAPE not in on_a_terminal(arguments, TERM="xterm-256color", NO_COLOR="1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    _, out, words = run(*arguments)
    assert ESCAPE not in out + words and out + words
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, words = run(*arguments)
    assert ESCAPE in out + words


# ---- completion, in a real bash


COMPLETE = r"""
eval "$(sightline --show-completion)"
complete -p sightline
try() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _sightline_completion sightline
  echo "$* => ${COMPREPLY[*]}"
}
try sightline ev
try sightline link --pol
try sightline link --policy ''
try sightline link --model ''
try sightline evaluate default CORPUS --split t
try sightline build dii-
try sightline link arti
"""


def test_bash_completes_commands_options_and_values(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").touch()
    script = tmp_path / "complete.sh"
    script.write_text(COMPLETE)
    environment = {**PLAIN, "PATH": f"{sysconfig.get_path('scripts')}:{PLAIN['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", script], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.stderr == ""
    first, *lines = done.stdout.splitlines()
    assert first == "complete -o default -F _sightline_completion sightline"
    assert [tuple(line.split(" => ")) for line in lines] == [
        ("sightline ev", "evaluate"),
        ("sightline link --pol", "--policy"),
        ("sightline link --policy ", "assignment dense top-k threshold mmc4"),
        ("sightline link --model ", "default mine"),
        ("sightline evaluate default CORPUS --split t", "train test"),
        ("sightline build dii-", "dii-stress"),
        ("sightline link arti", ""),  # where bash itself offers files
    ]


def test_completion_can_be_installed_for_bash(tmp_path):
    scripts = sysconfig.get_path("scripts")
    environment = {**PLAIN, "PATH": f"{scripts}:{PLAIN['PATH']}", "HOME": str(tmp_path)}
    script = tmp_path / "install.sh"
    script.write_text("sightline --install-completion\n. ~/.bashrc\ncomplete -p sightline\n")
    done = subprocess.run(
        ["bash", "--norc", script], capture_output=True, text=True, env=environment
    )
    assert "bash completion installed" in done.stdout and done.stderr == ""
    assert done.stdout.splitlines()[-1].startswith("complete -o default -F _sightline_completion")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_answered(shell):
    environment = {
        **PLAIN,
        "_SIGHTLINE_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "sightline link --policy t",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    command = [sys.executable, "-m", "sightline"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert re.findall(r"[\w-]+-k|threshold|dense", done.stdout) == ["top-k", "threshold"]


# ---- pipes


def test_a_reader_who_has_seen_enough_is_no_error(tmp_path):
    record = b'{"id": "1", "sentences": ["A wall."], "images": ["a.jpg"]}\n'
    (tmp_path / "documents.jsonl").write_bytes(record)
    for arguments in (["corpus", tmp_path, "--no-images"], ["--help"]):
        command = [sys.executable, "-m", "sightline", *arguments]
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=PLAIN)
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b"")


def test_names_from_strangers_reach_no_terminal(capsys):
    console.say("skipped \x1b]0;pwned\x07 a\u202eb\n\tnext")
    console.complain("\x9b31m")
    words = capsys.readouterr().err
    assert words == "skipped \\x1b]0;pwned\\x07 a\\u202eb\n\tnext\nError: \\x9b31m\n"


def test_json_on_a_terminal_holds_nothing_that_it_would_obey(tmp_path):
    Image.new("RGB", (64, 64), "teal").save(tmp_path / "teal.jpg")
    (tmp_path / "a.html").write_text("<p>A wall.</p><img src='teal.jpg' alt='x\x9b31m\u202ey'>")
    for options in (["--json"], ["--all"]):
        command = [sys.executable, "-m", "sightline", "alt", tmp_path / "a.html", "--check"]
        main, side = pty.openpty()
        running = subprocess.Popen([*command, *options], stdout=side, stderr=side, env=PLAIN)
        running.wait(60)
        os.close(side)
        shown = os.read(main, 2**16).decode()
        os.close(main)
        assert "\\u202e" in shown
        assert not any(sign in shown for sign in "\x9b\u202e")
