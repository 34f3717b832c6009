"""Run the notebooks and store their output, and turn them into pages of the site.

`python docs/notebooks.py` runs all of them again. mkdocs calls the functions whose names begin with
`on_`, which replace each notebook by a page of Markdown.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
PNG = "image/png"


def run(path: Path) -> dict[str, Any]:
    """The notebook with the output of its cells, run from top to bottom in a temporary folder; an
    error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute()
    text: str = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    result: dict[str, Any] = json.loads(text)
    return result


def markdown(notebook: dict[str, Any]) -> str:
    """The notebook as a page."""
    parts = (part for cell in notebook["cells"] for part in _parts(cell))
    return "\n\n".join(part for part in parts if part) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield f"```python\n{text}\n```"
    printed = [o["text"] for o in cell["outputs"] if o.get("name") == "stdout"]
    if printed:
        yield _listing("".join("".join(part) for part in printed))
    for output in cell["outputs"]:
        data = output.get("data", {})
        if PNG in data:
            yield f"![What the cell shows](data:{PNG};base64,{''.join(data[PNG]).strip()})"
        elif "text/html" in data:
            yield "".join(line.strip() for line in "".join(data["text/html"]).splitlines())
        elif "text/plain" in data:
            yield _listing(data["text/plain"])


def _listing(text: str | list[str]) -> str:
    return f"```text\n{''.join(text).rstrip()}\n```"


def on_files(files: Any, config: Any) -> Any:
    """Replace each notebook by its page."""
    from mkdocs.structure.files import File

    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        notebook = json.loads(Path(file.abs_src_path).read_text(encoding="utf-8"))
        name = file.src_uri.removesuffix(".ipynb") + ".md"
        files.append(File.generated(config, name, content=markdown(notebook)))
    return files


def on_page_markdown(markdown: str, **given: Any) -> str:
    """Let links to notebooks lead to their pages of the site."""
    return re.sub(r"\.ipynb(?=[)#])", ".md", markdown)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        kept = json.dumps(run(path), indent=1, ensure_ascii=False)
        path.write_text(kept + "\n", encoding="utf-8")
        print(path)
