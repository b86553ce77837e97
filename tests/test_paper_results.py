"""Every figure of the paper is compared with its LaTeX source, which is read independently."""

import re
from pathlib import Path

import pytest

from sightline.reproduction.paper_results import (
    DATASETS,
    RESULTS,
    SPEARMAN_DC_AP,
    TITLES,
    VARIANCE_EXPLAINED,
)

PAPER = Path(__file__).resolve().parents[2] / "shared" / "paper" / "hessel2019.tex"
MACROS = {r"\mscoco": "mscoco", r"\dii": "dii", r"\sis": "sis", r"\diihard": "dii-stress",
          r"\rqa": "rqa", r"\diy": "diy", r"\wiki": "wiki"}  # fmt: skip
#: The tables by the label that follows them, and their b.
TABLES = {
    "tab:ground_truth_res": 10,
    "tab:webdata_results": 10,
    "tab:ground_truth_dataone_res_20": 20,
    "tab:ground_truth_dataone_res_30": 30,
    "tab:ground_truth_res_20": 20,
    "tab:ground_truth_res_30": 30,
}


@pytest.fixture(scope="session")
def paper():
    if not PAPER.is_file():
        pytest.skip("the paper's source (../shared/paper beside the checkout) is not here")
    return PAPER.read_text()


def tabular_before(paper, label):
    before = paper[: paper.index(rf"\label{{{label}}}")]
    start, end = before.rindex(r"\begin{tabular}"), before.rindex(r"\end{tabular}")
    return before[start:end]


def figures(cell):
    """The numbers of a cell and whether each is bold."""
    found = re.findall(r"(\\textbf\{)?(-?\d*\.\d+)\}?", cell)
    return [(float(number), bool(bold)) for bold, number in found]


def row_name(cell, above, main):
    if "rotatebox" in cell:
        return f"{above} half"
    name, *extras = (part.strip() for part in cell.split("+"))
    if name in ("Random", "Obj Detect"):
        return {"Random": "Random", "Obj Detect": "Object detection"}[name]
    hard = "hard neg" in extras or (main and name != "NoStruct")
    if name == "NoStruct":
        return f"NoStruct {'hard' if hard else 'mean'}"
    half = " half" if any("frac" in extra for extra in extras) else ""
    return f"{name}{half}" if hard else f"{name}{half} mean"


def cells_of_the_paper(paper):
    """(dataset, row, b) -> [(figure, bold)] * 3, from every results table."""
    cells = {}
    for label, b in TABLES.items():
        lines = tabular_before(paper, label).splitlines()
        header = next(line for line in lines if "multicolumn" in line)
        datasets = [MACROS[macro] for macro in re.findall(r"\{(\\[a-z]+)\}", header)]
        name = ""
        for line in lines:
            if not line.rstrip().endswith(r"\\") or not figures(line):
                continue
            first, *rest = line.split("&")
            name = row_name(first.strip(), name, main=b == 10)
            assert len(rest) == 2 * len(datasets)
            for place, dataset in enumerate(datasets):
                auc, precision = rest[2 * place : 2 * place + 2]
                cells[dataset, name, b] = figures(auc) + figures(precision)
    return cells


def test_every_cell_of_the_six_tables(paper):
    cells = cells_of_the_paper(paper)
    # Tables 2 and 3 have 8 rows, the supplement's four 12; 4 and 2 datasets.
    assert len(cells) == len(RESULTS) == 8 * (4 + 2) + 2 * 12 * (4 + 2)
    assert {key: [value for value, _ in found] for key, found in cells.items()} == {
        key: list(scores) for key, scores in RESULTS.items()
    }


def test_the_main_tables_show_nostruct_with_the_mean_of_negatives(paper):
    """Their NoStruct is within a point of the supplement's plain one, far from its hard one."""
    assert "+ hard neg" not in tabular_before(paper, "tab:ground_truth_res")
    for dataset in DATASETS:
        main = RESULTS[dataset, "NoStruct mean", 10].auc
        assert abs(main - RESULTS[dataset, "NoStruct mean", 20].auc) < 1
    assert (
        RESULTS["mscoco", "NoStruct mean", 10].auc > 35 + RESULTS["mscoco", "NoStruct hard", 20].auc
    )


def test_the_figures_in_the_text(paper):
    text = " ".join(paper.split())
    assert r"lowest correlation with $\rho=.89$" in text
    assert r"on \rqa, DC and AP have a $\rho$ of only $.64$" in text
    assert SPEARMAN_DC_AP == {"mscoco": 0.89, "rqa": 0.64}
    crowd = [VARIANCE_EXPLAINED[name] for name in ("dii", "sis", "dii-stress")]
    organic = [VARIANCE_EXPLAINED[name] for name in ("rqa", "diy")]
    for group, spread, both in (
        (crowd, r"{}\% respectively", r"explained increases to {}\%"),
        (organic, r"only {}\% is explained by spread", r"{}\% is explained by spread+content"),
    ):
        assert spread.format("/".join(str(found.spread) for found in group)) in text
        figures_of_both = "/".join(str(found.spread_and_content) for found in group)
        assert both.format(figures_of_both) in text


def test_every_dataset_has_a_title():
    assert set(TITLES) == set(DATASETS) == {dataset for dataset, _, _ in RESULTS}
