// The page of a sweep: a plot of each measure over the first setting, with a line for each value of the second.

import { read } from "page/data.js";
import { $, colours, el, svg, widthOf } from "page/dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [400, 200, 58, 34];
const contents = await read($("data"));

/** A number of a column with four digits, a share in percent; a count with all of its digits. */
const number = (column, value) => (column.includes("share") ? `${+(100 * value).toPrecision(4)} %` : String(Number.isInteger(value) ? value : +value.toPrecision(4)));

/** Whether a measure has different values, so that its plot shows something. */
function varies(column) {
  const values = contents.rows.map((row) => row[column]).filter((value) => typeof value === "number");
  return new Set(values).size > 1;
}

const [first, second] = contents.keys;
/** The values of the second setting, one for each line of a plot; only null with one setting. */
const series = second === undefined ? [null] : [...new Set(contents.rows.map((row) => row[second]))];

/** How the line of a value of the second setting is drawn. */
const penOf = (order) => ({ fill: "none", stroke: colours().players[order % 8], "stroke-width": 2, "stroke-dasharray": ["", "6 3", "2 3", "8 3 2 3"][(order + Math.floor(order / 8)) % 4] });

/** The lines of all plots, with the values of the second setting. */
function legend() {
  if (second === undefined) return [];
  const line = (value, order) => el("span", {}, svg("svg", { viewBox: "0 0 40 8", width: 40, height: 8 }, svg("path", { d: "M0 4H40", ...penOf(order) })), value);
  return [second, ...series.map(line)];
}

function plot(column) {
  const theme = colours();
  const numbers = contents.rows.map((row) => Number(row[first]));
  const isNumber = numbers.every(Number.isFinite);
  const places = [...new Set(contents.rows.map((row) => row[first]))];
  const xs = isNumber ? numbers : contents.rows.map((row) => places.indexOf(row[first]));
  const half = column === "hit_share" ? contents.rows.map((row) => row.hit_share_ci95 ?? 0) : contents.rows.map(() => 0);
  const ys = contents.rows.map((row) => row[column]);
  const known = ys.filter((value) => value !== null);
  const [low, high] = [Math.min(0, ...known), Math.max(...ys.map((value, row) => (value ?? 0) + half[row]))];
  const [least, most] = [Math.min(...xs), Math.max(...xs)];
  const x = (value) => LEFT + ((value - least) / (most - least || 1)) * (WIDTH - LEFT - 12);
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - BOTTOM - 24);
  const words = (at, down, text, anchor) => svg("text", { x: at, y: down, "text-anchor": anchor }, text);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": column });
  for (const value of [low, (low + high) / 2, high]) {
    drawing.append(svg("path", { d: `M${LEFT} ${y(value)}H${WIDTH - 12}`, stroke: theme.grid }), words(LEFT - 6, y(value) + 4, number(column, value), "end"));
  }
  const ticks = isNumber ? [...new Set(numbers)] : places.map((_, place) => place);
  const each = Math.max(1, Math.ceil(ticks.length / 7));
  ticks.forEach((value, order) => {
    const text = isNumber ? String(value) : places[value];
    // The last text ends at the edge of the plot.
    if (order % each === 0) drawing.append(words(Math.min(x(value), WIDTH - 2 - widthOf(text, 11, "") / 2), HEIGHT - BOTTOM + 15, text, "middle"));
  });
  drawing.append(words(WIDTH - 12, HEIGHT - 4, first, "end"));
  series.forEach((name, order) => {
    const rows = [...contents.rows.keys()].filter((row) => ys[row] !== null && (second === undefined || contents.rows[row][second] === name)).sort((a, b) => xs[a] - xs[b]);
    const pen = penOf(order);
    // Between two names, such as those of presets, there is no value.
    if (isNumber) drawing.append(svg("path", { d: rows.map((row, place) => `${place === 0 ? "M" : "L"}${x(xs[row])} ${y(ys[row])}`).join(""), ...pen }));
    for (const row of rows) {
      if (half[row] > 0) drawing.append(svg("path", { d: `M${x(xs[row])} ${y(ys[row] - half[row])}V${y(ys[row] + half[row])}`, stroke: pen.stroke, "stroke-width": 1.5 }));
      drawing.append(svg("circle", { cx: x(xs[row]), cy: y(ys[row]), r: 3.5, fill: pen.stroke }, svg("title", {}, `${contents.keys.map((key) => `${key} ${contents.rows[row][key]}`).join(", ")}: ${number(column, ys[row])}${half[row] > 0 ? ` ± ${number(column, half[row])}` : ""}`)));
    }
  });
  return el("figure", {}, el("figcaption", {}, column.replaceAll("_", " ")), drawing);
}

function draw() {
  const figures = contents.columns.filter((column) => !contents.keys.includes(column) && column !== "hit_share_ci95" && varies(column));
  $("legend").replaceChildren(...legend());
  $("plots").replaceChildren(...figures.map(plot));
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "light" : "dark";
  draw();
}

document.title = `hitreg report: sweep of ${contents.keys.join(", ")}`;
$("title").textContent = `sweep of ${contents.keys.join(", ")}`;
const { names } = contents;
const logs = names.length > 3 ? `${names.length} logs, ${names[0]} to ${names.at(-1)}` : names.join(", ");
$("subtitle").textContent = `${logs}: ${contents.what_if}`;
$("subtitle").title = names.join("\n");
const head = el("tr", {}, ...contents.columns.map((column) => el("th", {}, column.replaceAll("_", " "))));
const rows = contents.rows.map((row) => el("tr", {}, ...contents.columns.map((column) => el("td", {}, typeof row[column] === "number" && !contents.keys.includes(column) ? number(column, row[column]) : row[column] ?? "–"))));
$("rows").append(el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
$("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.addEventListener("keydown", (event) => event.key.toLowerCase() === "t" && $("theme").click());
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.documentElement.dataset.ready = "yes";
