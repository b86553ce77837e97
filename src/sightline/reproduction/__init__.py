"""The paper's grid on a corpus: rows, their runs, the tables beside the paper's."""
