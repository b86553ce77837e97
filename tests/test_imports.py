"""What importing costs and which way dependencies point."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sightline

SOURCE = Path(sightline.__file__).parent

# From the bottom of the path of a document upwards; a module imports only from lines before its
# own. A new module has to find its place here.
ORDER = [
    "installed_packages", "problems", "verbosity", "progress", "machine", "files", "csv_cells",
    "tables", "metrics", "choices", "settings",
    "documents", "image_headers", "readers", "readers.compression",
    "readers.native", "readers.parquet", "readers.json_records", "readers.hessel2019",
    "readers.kept_fields", "readers.mmc4", "readers.obelics", "readers.recognition",
    "readers.tar_members", "readers.tar_shards", "readers.webdataset", "corpus",
    "sentences", "sentence_splitting", "wiki_markup", "related_words", "vocabulary",
    "word_vectors", "word_embedding",
    "html_writing", "pages", "readers.html_encoding", "readers.html_limits", "readers.html_images",
    "readers.html_tags", "readers.html_text", "readers.html_skipped", "readers.html_parts",
    "readers.html_walk", "readers.html_captions",
    "readers.html_content", "readers.html", "readers.markdown", "readers.text",
    "readers.page_folder", "page_corpus",
    "image_colours", "images", "decode_worker", "decode_pool", "near_duplicates",
    "document_rows", "unpacking", "conversion",
    "zip_limits", "safe_xml", "readers.contents", "readers.figure_captions",
    "readers.docx_styles", "readers.docx_texts", "readers.docx_drawings", "readers.docx_parts",
    "readers.docx_inserted", "readers.docx", "readers.epub_files", "readers.epub",
    "readers.pdf_annotations", "readers.pdf_filters", "readers.pdf_words",
    "readers.pdf_objects", "readers.pdf_bookmarks",
    "readers.pdf_blank", "readers.pdf_losses", "readers.pdf_layout",
    "readers.pdf_text", "readers.pdf_structure", "readers.pdf_images", "readers.pdf_paragraphs",
    "readers.pdf_captions",
    "readers.pdf", "isolation", "fetching",
    "paper", "histograms", "corpus_statistics", "image_folders", "distractors", "splits",
    "readers.mscoco", "readers.vist", "readers.recipeqa",
    "readers.wiki_articles", "readers.wiki", "readers.reddit_dumps", "readers.imgur_albums",
    "readers.diy", "building",
    "onnx_files", "torch_files", "efficientnet_lite", "efficientnet_lite_torch", "backbones",
    "densenet", "nasnet", "torch_backbones",
    "clip_backbones", "backbone_names",
    "duplicate_report", "features", "image_files", "image_features", "feature_journal",
    "extraction",
    "hash_counts", "corpus_checks", "image_copies", "image_checks", "corpus_report",
    "class_words", "batches", "disk_packing", "image_batches", "tuned_backbones",
    "trainable_backbones",
    "assignment", "gru", "similarity", "document_similarity", "loss", "encoders",
    "distributed", "objective", "adam",
    "numpy_encoders", "linking",
    "reliability", "confidence", "document_links", "bulk_linking", "token_ids",
    "compact_weights", "model_files", "model_card", "hub", "model", "clip_model", "link_records",
    "mixtures", "calibration",
    "articles", "article_folders",
    "shown_article", "article_body", "thumbnails", "notebook",
    "article_page", "article_links", "linked_documents", "link_reading",
    "link_outputs", "link_writing",
    "doctor",
    "source_edits", "tag_attributes", "page_structure", "image_places", "alt_audit", "alt_text",
    "docx_alts", "alt_writing", "alt_report", "alt_page", "pairs", "pair_writing",
    "storage", "shards", "shard_work", "engines", "engines.processes", "engines.ray",
    "engines.spark", "shard_runs",
    "evaluation", "baselines",
    "reproduction", "reproduction.paper_results", "reproduction.rows", "reproduction.documents",
    "reproduction.setup", "reproduction.results", "reproduction.result_tables",
    "reproduction.table_formats", "reproduction.table_files",
    "report", "report.run_folders", "document_measures", "analysis", "analysis_tables",
    "report.figures", "report.figure_links", "report.shown_documents",
    "report.page", "report.drawn_figures", "report.report", "sample_page", "demo_page", "demo",
    "checkpoints", "training_data", "training_run", "training_folder", "finetuning",
    "tensorboard_log", "training", "console",
    "reproduction.row_process", "reproduction.overview", "reproduction.grid",
    "service", "service.limits", "service.errors", "service.metrics", "service.logs",
    "service.batching", "service.shared_work", "service.feature_cache", "service.schemas",
    "service.upload_names",
    "service.upload_reading", "service.reader_pool", "service.engine", "service.submissions",
    "service.configuration", "service.state", "service.answers", "service.live_article",
    "service.corpus_view", "service.bundled_examples", "service.web", "service.openapi",
    "service.routes",
    "service.observation", "service.pace", "service.admission", "service.app", "service.running",
    "commands", "commands.values", "commands.manners", "commands.settings_file",
    "commands.completions", "commands.opening", "commands.options", "commands.shards",
    "commands.train", "commands.calibrate", "commands.evaluate", "commands.link",
    "commands.alt", "commands.pairs",
    "commands.features", "commands.duplicates", "commands.convert", "commands.build_pages",
    "commands.build", "commands.reproduce",
    "commands.analyze", "commands.corpus", "commands.serve", "commands.demo", "commands.doctor",
    "cli", "__main__",
]  # fmt: skip

#: The only modules that may import torch: everything else works without the extra.
TORCH = {
    "densenet", "nasnet", "torch_backbones", "clip_backbones", "clip_model",
    "efficientnet_lite_torch", "trainable_backbones",
    "gru", "similarity", "document_similarity", "loss", "encoders", "distributed", "objective",
    "adam", "checkpoints", "training_run", "training_folder", "finetuning", "tensorboard_log",
    "reproduction.row_process",
}  # fmt: skip
#: Pure functions on arrays: nothing of ours but each other.
CORE = {"similarity", "document_similarity", "loss", "assignment"}


def modules():
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), ast.parse(file.read_text())


def test_no_module_is_longer_than_one_reads_at_a_sitting():
    lengths = {file: len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")}
    assert len(lengths) > 200
    assert {file.name: length for file, length in lengths.items() if length > 400} == {}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "sightline":
            yield from (f"sightline.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_every_module_has_its_place_and_imports_only_from_below():
    seen = 0
    for name, tree in modules():
        if name == "__init__":
            continue
        assert name in ORDER, f"{name} is not in the order of modules"
        for imported in imports(tree):
            if imported.startswith("sightline.") and imported != "sightline.__version__":
                below = imported.removeprefix("sightline.")
                assert ORDER.index(below) < ORDER.index(name), f"{name} imports {below}"
        seen += 1
    assert seen == len(ORDER)


def test_only_training_imports_torch_and_nothing_imports_what_is_ruled_out():
    banned = {"torchvision", "timm", "open_clip", "pickle", "tensorflow"}
    found = set()
    for name, tree in modules():
        tops = {imported.partition(".")[0] for imported in imports(tree)}
        assert not tops & banned, name
        if "torch" in tops:
            found.add(name)
    assert found == TORCH


def test_the_core_is_pure_functions_on_arrays():
    seen = 0
    for name, tree in modules():
        if name in CORE:
            ours = {i.removeprefix("sightline.") for i in imports(tree) if "sightline" in i}
            assert ours <= CORE, name
            seen += 1
    assert seen == len(CORE)


def run(code, *arguments):
    command = [sys.executable, "-X", "importtime", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    "code",
    [
        "import sightline",
        "import sys; sys.argv = ['sightline', '--help']\n"
        "from sightline.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
        "import sightline; sightline.LinkModel, sightline.evaluate, sightline.read",
    ],
    ids=["import", "help", "linking"],
)
def test_neither_torch_nor_numba_is_loaded(code):
    loaded = {line.rpartition("|")[2].strip() for line in run(code).stderr.splitlines()}
    assert "sightline" in loaded
    assert not loaded & {"torch", "numba", "pyarrow", "sklearn"}


def test_help_answers_at_once():
    """A second of CPU time is generous: it takes 0.3 s."""
    command = [sys.executable, "-m", "sightline", "--help"]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    used = after.children_user + after.children_system
    assert used - before.children_user - before.children_system < 1
    assert "train" in done.stdout


def test_public_names():
    for name in sightline.__all__:
        assert getattr(sightline, name).__doc__
    assert set(sightline.__all__) == set(sightline._MODULES)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sightline.nothing
