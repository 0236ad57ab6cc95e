#!/bin/sh
# Package:   mkdocs 1.6.1 with mkdocs-material 9.8.2 (PyPI)
# Behaviour: The plugin `offline`, which is to make the search work in pages that are opened from a disk, adds a script of
#            unpkg.com to every page. Without a network there is no search, and with one each reader asks that server.
#            Without the plugin no page asks another server, and the search needs a web server.
# Output:    without offline: 0 of 2 pages have a script of another server
#            with offline: 2 of 2 pages have a script of another server
# Run:       sh findings/mkdocs_material_offline_plugin.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet mkdocs==1.6.1 mkdocs-material==9.8.2
mkdir "$place/docs"
echo "# One" > "$place/docs/index.md"
echo "# Two" > "$place/docs/two.md"
build() {
  printf 'site_name: Site\ntheme: {name: material, font: false}\nplugins: [%s]\n' "$1" > "$place/mkdocs.yml"
  NO_MKDOCS_2_WARNING=1 "$place/venv/bin/mkdocs" build --quiet --clean -f "$place/mkdocs.yml"
  pages=$(find "$place/site" -name '*.html' ! -name 404.html)
  asks=$(grep -l 'script src="https://' $pages | wc -l | tr -d ' ') || true
  echo "$2: $asks of $(echo "$pages" | wc -l | tr -d ' ') pages have a script of another server"
}
build "search" "without offline" > "$place/seen"
build "search, offline" "with offline" >> "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
without offline: 0 of 2 pages have a script of another server
with offline: 2 of 2 pages have a script of another server
TEXT
cmp "$place/seen" "$place/expected"
