// The search, and the menu's state. Without JavaScript, the pages and the menu work all the same.
"use strict";
const up = document.currentScript.dataset.up;
const form = document.getElementById("search"), input = form.q, results = document.getElementById("results");
const menu = document.getElementById("menu"), desktop = matchMedia("(min-width: 60rem)");

const showMenu = () => { menu.open = desktop.matches; };
desktop.addEventListener("change", showMenu);
showMenu();
form.hidden = false;

let index; // a promise of the entries, which the first search loads
function load() {
  index ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = up + "search-index.js";
    script.onload = () => resolve(window.searchIndex.map((entry) =>
      ({...entry, lower: [entry.title, entry.heading, entry.text].map((s) => s.toLowerCase())})));
    script.onerror = reject;
    document.head.append(script);
  });
  return index;
}

// score returns 0 unless the entry has every word; titles count more than headings, these more than text.
function score(entry, words) {
  let total = 0;
  for (const word of words) {
    const [title, heading, text] = entry.lower;
    const found = 12 * title.includes(word) + 8 * heading.includes(word) + Math.min(text.split(word).length - 1, 5);
    if (!found) return 0;
    total += found;
  }
  return total + (entry.heading ? 0 : 1);
}

// excerpt returns the text around the first word, with all words marked.
function excerpt(entry, words) {
  const at = Math.max(0, Math.min(...words.map((w) => entry.lower[2].indexOf(w)).filter((i) => i >= 0), 1e9) % 1e9 - 60);
  const span = document.createElement("span");
  const escaped = words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  for (const part of entry.text.slice(at, at + 180).split(new RegExp(`(${escaped})`, "i"))) {
    if (words.includes(part.toLowerCase())) {
      const mark = document.createElement("mark");
      mark.textContent = part;
      span.append(mark);
    } else span.append(part);
  }
  return span;
}

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.hidden = words.length === 0;
  if (results.hidden) return;
  const note = document.createElement("p");
  let entries;
  try {
    entries = await load();
  } catch {
    note.textContent = "The search index could not be loaded.";
    results.replaceChildren(note);
    return;
  }
  const found = entries.map((entry) => ({entry, score: score(entry, words)})).filter((f) => f.score > 0)
    .sort((a, b) => b.score - a.score).slice(0, 20);
  note.textContent = found.length ? `${found.length} results` : "Nothing found. Try fewer words.";
  results.replaceChildren(note, ...found.map(({entry}) => {
    const link = document.createElement("a");
    link.href = up + entry.url;
    link.append(entry.heading ? `${entry.title} › ${entry.heading}` : entry.title, excerpt(entry, words));
    return link;
  }));
}

input.addEventListener("input", search);
form.addEventListener("submit", (event) => { event.preventDefault(); results.querySelector("a")?.click(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
  if (event.key === "Escape") { results.hidden = true; }
});
document.addEventListener("click", (event) => { if (!event.target.closest("header")) results.hidden = true; });
const query = new URLSearchParams(location.search).get("q");
if (query) { input.value = query; search(); }
