"""A preprocessor of mdBook: adds each file outside `docs` that a page links to as a page of the book.

mdBook renders only files in `docs`. Links to source files, READMEs and folders are right in the repository; this makes
them right in the book, too. A linked Markdown file becomes a page, a source file a page with its text, and a folder a
page with its files. A picture for light and dark becomes two images; `book.css` hides the one that the theme does not use.
"""

import json
import posixpath
import re
import sys
from pathlib import Path

LINK = re.compile(r"(\]\(|^\[[^\]]+\]: +|srcset=\"|src=\"|href=\")([^)\s\"]+)", re.MULTILINE)
CODE = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
DARK = r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">'
PICTURE = re.compile(DARK + r'(<img [^>]*src=")([^"]+)("[^>]*>)</picture>')
LANGUAGES = {"rs": "rust", "py": "python", "sh": "bash", "h": "c", "cs": "csharp", "yml": "yaml", "mjs": "js"}


class Book:
    def __init__(self, root, items):
        self.root = root
        self.chapters = {}  # paths in the repository, and in the book
        self.added = []
        for chapter in chapters_of(items):
            self.chapters[posixpath.join("docs", chapter["source_path"])] = chapter["path"]

    def add(self, file):
        """Adds a page for a file or folder of the repository."""
        is_page = file.endswith(".md")
        self.chapters[file] = path = "source/" + file + ("" if is_page else ".md")
        chapter = {"name": file, "content": "", "number": None, "sub_items": [], "path": path}
        chapter |= {"source_path": None, "parent_names": ["Source files"]}
        self.added.append(chapter)
        place = self.root / file
        if place.is_dir():
            names = sorted(entry.name for entry in place.iterdir() if entry.is_file())
            links = "".join(f"- [{name}]({name})\n" for name in names)
            chapter["content"] = self.linked(f"# {file}\n\n{links}", file + "/-", path)
        elif is_page:
            chapter["content"] = self.linked(place.read_text(), file, path)
        else:
            extension = file.rpartition(".")[2]
            language = LANGUAGES.get(extension, extension if "." in posixpath.basename(file) else "text")
            chapter["content"] = f"# {file}\n\n~~~~~~{language}\n{place.read_text()}~~~~~~\n"

    def linked(self, text, file, path):
        """The text of a page with its links as links of the book."""

        def target(match):
            link, hash, anchor = match[2].partition("#")
            if not link or ":" in link:
                return match[0]
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(file), link))
            if wanted.startswith("..") or not (self.root / wanted).exists():
                return match[0]
            if wanted.startswith("docs/") and not wanted.endswith(".md"):
                return match[1] + posixpath.relpath(wanted[5:], posixpath.dirname(path) or ".") + hash + anchor
            if wanted not in self.chapters:
                self.add(wanted)
            return match[1] + posixpath.relpath(self.chapters[wanted], posixpath.dirname(path) or ".") + hash + anchor

        text = PICTURE.sub(r'<span class="of-light">\2\3\4</span><span class="of-dark">\2\1\4</span>', text)
        parts, end = [], 0
        for code in CODE.finditer(text):
            parts += [LINK.sub(target, text[end : code.start()]), code[0]]
            end = code.end()
        return "".join(parts) + LINK.sub(target, text[end:])


def chapters_of(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters_of(item["Chapter"]["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    items = book["items"] if "items" in book else book["sections"]  # mdBook before 0.5 says sections
    added = Book(Path(context["root"]), items)
    for chapter in list(chapters_of(items)):
        chapter["content"] = added.linked(chapter["content"], "docs/" + chapter["source_path"], chapter["path"])
    number = 1 + max(chapter["number"][0] for chapter in chapters_of(items) if chapter["number"])
    pages = sorted(added.added, key=lambda chapter: chapter["name"])
    for place, chapter in enumerate(pages, 1):
        chapter["number"] = [number, place]
    files = {"name": "Source files", "content": "# Source files\n\nThe files that other pages link to.\n"}
    files |= {"number": [number], "sub_items": [{"Chapter": chapter} for chapter in pages]}
    files |= {"path": "source.md", "source_path": None, "parent_names": []}
    items.append({"Chapter": files})
    json.dump(book, sys.stdout)


main()
