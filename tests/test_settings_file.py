"""Settings from a TOML file and from the environment, and in which order they count."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from sightline import cli, verbosity
from sightline.commands import settings_file
from sightline.commands.reproduce import decided
from sightline.commands.values import UsageSentence, choices_of, converted, kind_of
from sightline.problems import did_you_mean


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SIGHTLINE_")]:
        monkeypatch.delenv(name)
    yield tmp_path
    verbosity.choose_verbosity(verbosity.Verbosity.USUAL)


@pytest.fixture
def parsed(monkeypatch, folder):
    """Parse a command line as `sightline` does; gives the values that the command gets."""
    (folder / "corpus").mkdir()

    def parsed(*words):
        root = typer.main.get_command(cli.app)
        taken = {}
        for command in (root.commands["link"], root.commands["train"], root.commands["evaluate"]):
            monkeypatch.setattr(command, "callback", lambda **values: taken.update(values))
        monkeypatch.setattr(root, "callback", None)
        root.main(list(words), prog_name="sightline", standalone_mode=False)
        return taken

    return parsed


@pytest.fixture
def refused(monkeypatch, capsys):
    def refused(*words):
        monkeypatch.setattr(sys, "argv", ["sightline", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 2
        return capsys.readouterr().err.splitlines()[-1].removeprefix("Error: ")

    return refused


def write(text, name="sightline.toml"):
    Path(name).write_text(text)


def test_command_line_then_environment_then_file_then_default(parsed, monkeypatch):
    assert parsed("link", "corpus")["policy"] == "assignment"
    write('[link]\npolicy = "dense"\nmax_links = 3\nmin-confidence = 0\nmatrix = true\n')
    values = parsed("link", "corpus")
    assert (values["policy"], values["max_links"], values["matrix"]) == ("dense", "3", True)
    assert values["min_confidence"] == 0.0 and isinstance(values["min_confidence"], float)
    monkeypatch.setenv("SIGHTLINE_LINK_POLICY", "mmc4")
    monkeypatch.setenv("SIGHTLINE_LINK_MATRIX", "no")
    values = parsed("link", "corpus")
    assert (values["policy"], values["max_links"], values["matrix"]) == ("mmc4", "3", False)
    values = parsed("link", "corpus", "--policy", "top-k", "--max-links", "all")
    assert (values["policy"], values["max_links"]) == ("top-k", "all")


def test_a_file_is_named_by_option_or_variable_and_needs_no_command_line_options(
    parsed, monkeypatch
):
    write('[train]\noutput = "model"\nword-vectors = "glove.txt"\nlayers = 2\n', "mine.toml")
    values = parsed("--config", "mine.toml", "train", "corpus")
    assert (values["output"], values["word_vectors"]) == (Path("model"), Path("glove.txt"))
    assert values["layers"] == 2
    monkeypatch.setenv("SIGHTLINE_CONFIG", "mine.toml")
    assert parsed("train", "corpus")["layers"] == 2
    write("[train]\nlayers = 1\n")  # of this folder, and not the one that is named
    assert parsed("train", "corpus")["layers"] == 2


def test_lists(parsed, monkeypatch):
    write("[evaluate]\ncutoff = [1, 3]\n")
    assert parsed("evaluate", "random", "corpus")["cutoff"] == [1, 3]
    monkeypatch.setenv("SIGHTLINE_EVALUATE_CUTOFF", "2 4")
    assert parsed("evaluate", "random", "corpus")["cutoff"] == [2, 4]
    assert parsed("evaluate", "random", "corpus", "--cutoff", "9")["cutoff"] == [9]


def test_what_a_found_file_decides_is_told(parsed, capsys):
    write('[link]\npolicy = "dense"\n[train]\nlayers = 2\n')
    parsed("link", "corpus")
    assert capsys.readouterr().err == "settings of sightline.toml: policy = dense\n"
    parsed("link", "corpus", "--policy", "mmc4")
    assert capsys.readouterr().err == ""
    parsed("--config", "sightline.toml", "link", "corpus")
    assert capsys.readouterr().err == ""
    parsed("--config", "sightline.toml", "-v", "link", "corpus")
    words = capsys.readouterr().err
    assert "settings of sightline.toml: policy = dense\n" in words and "INPUT = corpus\n" in words


def test_a_variable_that_names_no_option_is_told(parsed, monkeypatch, capsys):
    monkeypatch.setenv("SIGHTLINE_LINK_POLCY", "dense")
    monkeypatch.setenv("SIGHTLINE_LINK_UNIT", "paragraph")
    parsed("link", "corpus")
    words = capsys.readouterr().err
    assert "SIGHTLINE_LINK_POLCY is set, but there is no such option. Did you mean" in words
    assert "SIGHTLINE_LINK_POLICY" in words and "UNIT" not in words
    monkeypatch.setenv("SIGHTLINE_MODEL", "m")
    parsed("link", "corpus")
    assert "model of this command is SIGHTLINE_LINK_MODEL" in capsys.readouterr().err
    monkeypatch.setenv("SIGHTLINE_LINK_MODEL", "m")
    parsed("link", "corpus")
    assert "model of this" not in capsys.readouterr().err


def test_quiet_can_be_a_setting_and_is_overruled_by_the_command_line(parsed):
    write("quiet = true\n")
    parsed("link", "corpus")
    assert verbosity.is_quiet()
    parsed("link", "corpus", "-v")
    assert verbosity.is_verbose()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[link]\npolcy = 'dense'",
            "[link] polcy: there is no such setting. Did you mean 'policy'?",
        ),
        ("[lnk]\npolicy = 'dense'", "lnk: there is no such table. Did you mean 'link'?"),
        ("policy = 'dense'", "Options stand below the name of their command, such as [alt]."),
        ("link = 3", "link: there is no such setting."),
        ("version = true", "version: there is no such setting."),
        ("[link]\ninputs = ['a']", "inputs: there is no such setting."),
        ("[link]\nquiet = true", "quiet: there is no such setting."),
        ("[link]\npolicy = 'dens'", "[link] policy is 'dens'; expected assignment"),
        ("[link]\npolicy = 3", "[link] policy is 3; expected assignment"),
        ("[link]\nmatrix = 1", "[link] matrix is 1; expected true or false."),
        ("[link]\nthreshold = '0.1'", "threshold is '0.1', a text; leave the quotes out."),
        ("[link]\nthreshold = true", "threshold is True; expected a number."),
        ("[link]\nthreshold = 7", "threshold is 7.0; expected -1 to 1."),
        ("[train]\nepochs = 2.5", "epochs is 2.5; expected a whole number."),
        ("[train]\nepochs = true", "epochs is True; expected a whole number."),
        ("[train]\nfeatures = 3", "features is 3; expected a path."),
        ("[train]\nloss = ['hinge']", "loss is ['hinge']; expected hinge or softmax."),
        ("[evaluate]\ncutoff = 3", "cutoff is 3; expected a list: [3]"),
        ("[evaluate]\ncutoff = ['a']", "cutoff is 'a', a text; leave the quotes out."),
        ("[build.mscoco]\nsede = 3", "[build.mscoco] sede: there is no such setting."),
        ("[build.mscocoa]\nseed = 3", "[build] mscocoa: there is no such table."),
        ("[link", "the settings are not TOML: "),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(refused, text, sentence):
    write(text)
    told = refused("link", "corpus")
    assert told.startswith("sightline.toml: ") and sentence in told


def test_files_that_cannot_be_settings(refused, folder):
    assert refused("--config", "none.toml", "demo").startswith("none.toml: the settings cannot be")
    assert refused("--config", ".", "demo").startswith(".: the settings cannot be read")
    (folder / "binary.toml").write_bytes(b"\xff\xfe")
    assert refused("--config", "binary.toml", "demo").startswith(
        "binary.toml: the settings are not"
    )
    (folder / "large.toml").write_bytes(b"#" * (2**20 + 1))
    assert "larger than 1 MiB" in refused("--config", "large.toml", "demo")
    (folder / "deep.toml").write_text("[link]\npolicy = " + "[" * 100_000)
    assert "not TOML" in refused("--config", "deep.toml", "demo")


def test_wrong_variables_are_told_by_their_names(refused, folder, monkeypatch):
    (folder / "corpus").mkdir()
    monkeypatch.setenv("SIGHTLINE_LINK_POLICY", "dens")
    assert refused("link", "corpus").startswith("SIGHTLINE_LINK_POLICY is 'dens'; expected")
    monkeypatch.setenv("SIGHTLINE_MAX_BODY", "0")
    assert refused("serve") == "SIGHTLINE_MAX_BODY is 0; expected at least 1."
    monkeypatch.delenv("SIGHTLINE_MAX_BODY")
    monkeypatch.setenv("SIGHTLINE_SERVE_MAX_BODY", "x")
    assert refused("serve") == "SIGHTLINE_SERVE_MAX_BODY is 'x'; expected a whole number."


def test_help_and_doctor_do_not_need_sound_settings():
    write("[link]\nmin-confidence = 7\n")
    command = [sys.executable, "-m", "sightline"]
    done = subprocess.run([*command, "link", "--help"], capture_output=True, text=True, check=True)
    assert "settings are left alone: sightline.toml: [link] min-confidence is 7" in done.stderr
    assert done.stdout
    done = subprocess.run([*command, "doctor", "--json"], capture_output=True, text=True)
    assert done.returncode == 1
    failed = [one for one in json.loads(done.stdout)["findings"] if one["status"] == "failed"]
    assert [(one["what"], one["words"][:42]) for one in failed] == [
        ("settings", "sightline.toml: [link] min-confidence is 7")
    ]


# ---- a file that came with documents nobody vouches for


@pytest.mark.parametrize(
    "text",
    [
        "[link]\noutput = '/etc/passwd'",
        "[link]\nfetch = true",
        "[link]\nfeatures = 'ftp://evil/features'",
        "[link]\nfeatures = 'S3:/evil'",
        "[link]\nengine = 'ray'",
        "[link]\nengine-address = 'evil:1'",
        "[features]\nworkers = 0",
        "[features]\nweights = 'x'",
        "[features]\nbackbone = 'x'",
        "[link]\nmodel = 'x'",
        "[evaluate]\ndocuments = 'x'",
        "[corpus]\nsample_page = 'x'",
        "[alt]\nwrite = 'x'",
        "[serve]\nport = 80",
    ],
)
def test_a_found_file_neither_writes_nor_reaches_out(refused, text):
    write(text)
    assert "may not decide this" in refused("link", "corpus")


def all_options():
    def below(command):
        for one in command.params:
            if one.param_type_name == "option" and one.expose_value:
                yield one
        for child in getattr(command, "commands", {}).values():
            yield from below(child)

    return list(below(typer.main.get_command(cli.app)))


def test_every_path_is_known_to_be_read_or_is_kept_from_found_files():
    """Whoever adds an option for a path that is only read has to say so; others are refused."""
    paths = {one.name for one in all_options() if kind_of(one) is Path}
    trusted = {"backbone_weights", "weights"}
    written = {"output", "write", "documents", "sample_page", "tensorboard"}
    others = {"config", "corpus", "token_file"}  # of `serve`, or of all commands
    assert paths == settings_file.READ_PATHS | trusted | written | others


def test_no_variable_stands_for_two_options():
    """SIGHTLINE_<COMMAND>_<OPTION> is one name for one thing, also beside names of serve's own."""
    names = []

    def collect(command, prefix):
        for one in command.params:
            if one.param_type_name == "option" and one.expose_value:
                own = [one.envvar] if one.envvar else []
                names.extend([f"{prefix}_{one.name.upper()}", *own])
        for name, child in getattr(command, "commands", {}).items():
            collect(child, f"{prefix}_{name.upper().replace('-', '_')}")

    collect(typer.main.get_command(cli.app), "SIGHTLINE")
    assert len(names) > 150
    assert len(names) == len(set(names))


OPTIONS = all_options()
PLAIN = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(), st.dates(), st.datetimes(), st.times()
)


@given(st.sampled_from(OPTIONS), st.one_of(PLAIN, st.lists(PLAIN, max_size=3)))
def test_any_value_is_taken_as_its_type_or_refused_in_a_sentence(option, value):
    try:
        taken = settings_file._value(value, option, "place")
    except UsageSentence as refusal:
        assert str(refusal).startswith("place is ")
        return
    for one in taken if option.multiple else [taken]:
        assert isinstance(one, kind_of(option))
        assert not choices_of(option) or one in choices_of(option)
        assert option.min is None or one >= option.min
        assert option.max is None or one <= option.max


@given(st.sampled_from(OPTIONS), st.text())
def test_any_word_of_the_command_line_is_taken_as_its_type_or_refused(option, word):
    try:
        taken = converted(word, option, "place")
        assert isinstance(taken, kind_of(option))
        assert not choices_of(option) or taken in choices_of(option)
    except UsageSentence as refusal:
        assert str(refusal).startswith("place is ")


# ---- suggestions


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8, unique=True), st.data())
def test_the_name_itself_is_always_suggested(names, data):
    word = data.draw(st.sampled_from(names))
    assert repr(word) in did_you_mean(word, names) or word.casefold() in {
        name.casefold() for name in names if name != word
    }


def test_far_names_are_not_suggested():
    assert did_you_mean("zebra", ["link", "train"]) == ""


def test_a_recorded_command_says_what_a_file_and_the_environment_decided(monkeypatch):
    write("[reproduce]\nepochs = 3\nimages = false\nstrict = false\n", "here.toml")
    monkeypatch.setenv("SIGHTLINE_REPRODUCE_DIMENSION", "8")
    root = typer.main.get_command(cli.app)
    words = ["reproduce", "CORPUS", "-q", "-o", "OUT", "--rows", "AP, DC"]
    context = root.make_context("sightline", ["--config", "here.toml", *words])
    name, command, rest = root.resolve_command(context, words)
    assert list(decided(command.make_context(name, rest, parent=context))) == [
        *("CORPUS", "--output", "OUT", "--rows", "AP, DC"),
        *("--epochs", "3", "--dimension", "8", "--no-images"),
    ]
