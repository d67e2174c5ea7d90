"""The pages of docs/ as a site: Sphinx builds it with every warning an error, links among them."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def built(docs: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Sphinx over the folder `docs`."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", f"{out}-read", docs, out]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    done = built(DOCS, tmp_path / "site")
    assert (done.returncode, done.stderr) == (0, "")
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    made = {page.relative_to(tmp_path / "site") for page in (tmp_path / "site").rglob("*.html")}
    assert pages <= made
    home = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert all(f'href="{page.as_posix()}"' in home for page in pages - {Path("index.html")})


def test_links_that_lead_nowhere_and_a_page_that_none_leads_to_end_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(DOCS / "conf.py", docs)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (docs / "index.md").write_text("# Site\n\n## Pages\n\n* [Home](home.md)\n", "utf-8")
    links = "[one](nowhere.md), [another](home.md#no-such-heading), ![a picture](nowhere.png)"
    (docs / "home.md").write_text(f"# Home\n\n{links}\n", "utf-8")
    (docs / "lost.md").write_text("# Lost\n", "utf-8")
    done = built(docs, tmp_path / "site")
    assert done.returncode
    told = [line.partition("WARNING: ")[::2] for line in done.stderr.splitlines()]
    for place, what in (
        ("home.md", "nowhere"),
        ("home.md", "no-such-heading"),
        ("home.md", "nowhere.png"),
        ("lost.md", ""),
    ):
        assert any(place in where and what in warning for where, warning in told), (what, done.stderr)
