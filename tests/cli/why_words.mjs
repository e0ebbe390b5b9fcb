// Prints what the page's `why.js` says of a shot and a correction, the labels and breaks of charts, and the changed shots of
// differences. The data is JSON on standard input. It needs no browser: elements only collect their text.

import { register } from "node:module";

const web = new URL("../../crates/hitreg-analysis/src/page/web/", import.meta.url).href;
const hooks = `
  import { readFile } from "node:fs/promises";
  export const resolve = (name, context, next) =>
    name.startsWith("page/") ? { url: "${web}" + name.slice(5), format: "module", shortCircuit: true } : next(name, context);
  export const load = async (url, context, next) =>
    url.startsWith("${web}") ? { source: await readFile(new URL(url)), format: "module", shortCircuit: true } : next(url, context);
`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

class Element {
  style = {};
  dataset = {};
  children = [];
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  setAttribute() {}
  getContext() {
    return {};
  }
  get text() {
    return this.children.map((child) => child.text ?? String(child)).join(" ");
  }
}
const why = new Element();
const create = () => new Element();
globalThis.document = { getElementById: () => why, createElement: create, createElementNS: create, documentElement: Object.assign(create(), { dataset: { theme: "light" } }) };
globalThis.getComputedStyle = () => ({ getPropertyValue: () => "" });

let json = "";
for await (const part of process.stdin) json += part;
const { contents, selected = [], sides = [], lines = [], differences = [] } = JSON.parse(json);
const { showWhy } = await import("page/why.js");
for (const item of selected) {
  showWhy(contents, item);
  console.log(why.text);
}
const { laneText, valueAt } = await import("page/charts.js");
const { seriesOf } = await import("page/series.js");
for (const side of sides) side.clockOf = (player) => (player === null ? { at_us: side.ticks_us } : { at_us: [] });
for (const { kind, lanes } of seriesOf({ sides })) {
  if (kind !== "marks") continue;
  for (const follow of [null, 1]) {
    const state = { follow, sides: new Set(sides.keys()) };
    const isShown = ({ player }) => follow === null || player === follow;
    for (const lane of lanes) console.log(laneText(lane, lane.counts.filter(isShown), state, sides), lane.marks.length);
  }
}
const { changedShots } = await import("page/lookup.js");
for (const difference of differences) console.log(changedShots({ difference }).map(({ change }) => change).join(" "));
const isBreak = (at, row) => row > 0 && valueAt({ at, values: at, gaps: [] }, at[row] - 1) === undefined;
for (const at of lines) console.log(at.map((_, row) => row).filter((row) => isBreak(at, row)).join(" "));
