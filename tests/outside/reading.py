"""How easy the pages read: Flesch reading ease of README.md and core/docs, code and tables left out. Wants a median of 45.

    python3 -m venv DIR && DIR/bin/pip install textstat==0.7.4 && DIR/bin/python tests/outside/reading.py [PAGE...]
"""

import re
import statistics
import sys
from pathlib import Path

import textstat

WANTED = 45


def prose_of(text):
    """Paragraphs and list items as sentences; inline code keeps its words."""
    text = re.sub(r"^\s*```.*?^\s*```\n?", "", text, flags=re.S | re.M)
    lines = [line for line in text.split("\n") if not re.match(r"\||#|!\[| {4,}\S", line)]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines)).replace("`", "")
    text = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "\n", text, flags=re.M)
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
    return "\n".join(p if p[-1] in ".?!" else p + "." for p in paragraphs if len(p.split()) > 2)


root = Path(__file__).resolve().parents[2]
pages = [Path(p) for p in sys.argv[1:]] or [root / "README.md", *sorted((root / "core/docs").glob("*.md"))]
ease = {p: textstat.flesch_reading_ease(prose_of(p.read_text())) for p in pages}
for page, score in sorted(ease.items(), key=lambda row: row[1]):
    print(f"{score:6.1f}  {page}")
median = statistics.median(ease.values())
print(f"{median:6.1f}  median of {len(ease)} pages")
sys.exit(median < WANTED)
