"""Where the tests of a module are: in the file of its name, or with those of what it helps."""

from pathlib import Path

import sightline

TESTS = Path(__file__).parent
SOURCE = Path(sightline.__file__).parent

#: The test files of the modules that have none of their own name.
HOMES = {
    "alt_text": "alt_audit alt_page alt_report",
    "alt_writing": "docx_alts image_places page_structure source_edits tag_attributes",
    "analysis": "analysis_tables document_measures report.run_folders",
    "article_page": "article_body shown_article",
    "articles": "article_links",
    "backbones": "efficientnet_lite_torch backbone_names",
    "building": "image_folders readers.json_records",
    "clip_backbones": "clip_model",
    "command_line": "console verbosity",
    "confidence": "calibration mixtures reliability",
    "corpus_statistics": "paper",
    "decode_pool": "decode_worker",
    "demo": "demo_page",
    "diy": "readers.imgur_albums readers.reddit_dumps",
    "doctor": "installed_packages machine",
    "docx": "readers.docx_drawings readers.docx_inserted readers.docx_parts readers.docx_styles "
    "readers.docx_texts readers.figure_captions",
    "encoders": "batches numpy_encoders objective",
    "engines": "engines.processes engines.ray engines.spark",
    "epub": "readers.epub_files",
    "extraction": "feature_journal",
    "figures": "report.figure_links thumbnails",
    "finetuning": "image_batches trainable_backbones",
    "html": "readers.html_captions readers.html_content readers.html_encoding readers.html_images "
    "readers.html_limits readers.html_parts readers.html_skipped readers.html_tags "
    "readers.html_text readers.html_walk",
    "hub": "model_card",
    "image_features": "image_files link_records",
    "images": "image_colours image_headers",
    "isolation": "readers.contents",
    "link_outputs": "choices csv_cells link_writing linked_documents",
    "mmc4": "readers.kept_fields",
    "model": "model_files",
    "mscoco": "distractors splits",
    "page_folder": "page_corpus readers.text",
    "pairs": "pair_writing link_reading",
    "pdf": "readers.pdf_annotations readers.pdf_blank readers.pdf_captions readers.pdf_images "
    "readers.pdf_layout "
    "readers.pdf_paragraphs readers.pdf_text",
    "pdf_hostile": "readers.pdf_bookmarks readers.pdf_words",
    "pdf_losses": "readers.pdf_objects readers.pdf_structure",
    "readers": "problems readers.compression readers.hessel2019 readers.native readers.parquet "
    "readers.recognition",
    "report": "report.drawn_figures report.page report.shown_documents",
    "reproduction": "reproduction.documents reproduction.grid reproduction.overview "
    "reproduction.results reproduction.row_process reproduction.rows reproduction.setup",
    "result_tables": "reproduction.table_files reproduction.table_formats",
    "service": "service.answers service.app service.engine service.openapi service.reader_pool "
    "service.routes service.schemas service.state service.submissions",
    "service_hostile": "service.upload_reading",
    "service_page_routes": "service.bundled_examples service.corpus_view service.live_article "
    "service.web",
    "service_parts": "service.admission service.batching service.configuration service.errors "
    "service.feature_cache service.limits service.pace service.shared_work service.upload_names",
    "service_process": "service.logs service.metrics service.observation service.running",
    "shards": "shard_runs shard_work",
    "document_similarity": "similarity",
    "tables": "document_links",
    "torch_backbones": "densenet nasnet",
    "training": "checkpoints training_data training_folder training_run",
    "webdataset": "readers.tar_members readers.tar_shards",
    "wiki": "readers.wiki_articles",
    "word_vectors": "word_embedding",
    "zip_limits": "safe_xml",
}


def test_every_module_has_a_home_for_its_tests():
    modules = {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        for file in SOURCE.rglob("*.py")
        if not file.stem.startswith("__")
    }
    # Commands are run as such, by the tests of what they call.
    modules = {module for module in modules if not module.startswith("commands.")}
    own = {module for module in modules if (TESTS / f"test_{_name(module, modules)}.py").is_file()}
    housed = [module for of_file in HOMES.values() for module in of_file.split()]
    assert [name for name in HOMES if not (TESTS / f"test_{name}.py").is_file()] == []
    assert len(housed) == len(set(housed))
    assert set(housed) == modules - own


def _name(module, modules):
    """The last part of a module's name, unless there is one outside of packages that has it."""
    last = module.rpartition(".")[2]
    return module if last in modules else last
