"""fgp-vnn report: an HTML page about a run or a comparison."""

from __future__ import annotations

import argparse
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.arguments import add_rules

EXAMPLE = "fgp-vnn report runs/mnist_fc --open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=Path, help="folder that bench or compare has written (its --out)")
    add(
        "--ours",
        metavar="TOOL",
        help="tool whose times the plots compare with those of the others (default: the first)",
    )
    add_rules(parser)
    add("--open", action="store_true", help="open the page in a browser (default: off)")


def run(args: argparse.Namespace) -> int:
    """Write the page and print its path; return 0."""
    from fgp_vnn.report.run_page import write_report

    if args.folder.is_file():
        raise InputError(
            f"{args.folder}: a file; give the folder that bench or compare has written"
        )
    page = write_report(args.folder, ours=args.ours, year=args.rules)
    print(page)
    if args.open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    return 0
