// Creates elements without parsing HTML, so names from a trace are always plain text.

export const $ = (id) => document.getElementById(id);

/** Creates an element with properties and children; string children become text. */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Creates an SVG element. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A number with fixed decimals. As on the command line, a number in the middle goes to the even digit. */
export function fixed(value, decimals) {
  const isInMiddle = Math.abs(value * 2 ** (decimals + 1)) % 2 === 1;
  const below = Math.floor(value * 10 ** decimals);
  return isInMiddle ? ((below + Math.abs(below % 2)) / 10 ** decimals).toFixed(decimals) : value.toFixed(decimals);
}

export const seconds = (us) => (us === null || us === undefined ? "not known" : `${fixed(us / 1e6, 3)} s`);
export const ms = (us) => `${fixed(us / 1e3, 1)} ms`;

/** Formats a measure with one decimal from 10 on and two below, as the command line does. */
export function measure(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "not known";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10) return fixed(value, 1);
  return size < 0.005 ? value.toExponential(1) : fixed(value, 2);
}

/** A measure with its largest error, and only the decimals that are known: 8 ±2. */
export function measureWithin(value, uncertainty) {
  const known = [0, 1, 2].slice(0, Math.abs(value) >= 10 ? 2 : 3).find((decimals) => 0.1 ** decimals <= uncertainty);
  return known === undefined ? measure(value) : `${fixed(value, known)} ±${fixed(uncertainty, known)}`;
}

/** A number with the fewest digits that tell it from its neighbours in single precision, if it has single precision. Whole
    numbers of more than 53 bits are text. */
export function digits(value) {
  if (value === null || Number.isNaN(value)) return "?";
  if (typeof value === "string" || Number.isSafeInteger(value) || Math.fround(value) !== value) return String(value);
  const fewest = [6, 7, 8].find((many) => Math.fround(Number(value.toPrecision(many))) === value) ?? 9;
  return String(Number(value.toPrecision(fewest)));
}

export const count = (number) => number.toLocaleString("en");
/** A count with its noun: `1 shot`, `2 shots`. */
export const quantity = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Sizes a canvas in device pixels, and returns its context scaled to CSS pixels. */
export function fitted(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width: box.width, height: box.height };
}

/** The text size relative to the default, from the document's font size. */
export const enlarged = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
export const font = (size, weight = "") => `${weight} ${Math.round(size * enlarged())}px system-ui, sans-serif`.trim();

const ruler = document.createElement("canvas").getContext("2d");
/** The width of a text in the page's font, in pixels. */
export function widthOf(text, size, weight) {
  ruler.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

let theme = null;
/** The colours of the theme, by their names in style.css. */
export function colours() {
  const name = document.documentElement.dataset.theme;
  if (theme?.name !== name) {
    const style = getComputedStyle(document.documentElement);
    const of = (key) => style.getPropertyValue(`--${key}`).trim();
    theme = { name };
    for (const key of ["paper", "raised", "line", "ink", "faint", "wall", "accent", "select", "hit", "miss", "changed", "grid", "field"]) {
      theme[key] = of(key);
    }
    const dark = name === "dark";
    theme.players = dark
      ? ["#56b4e9", "#e69f00", "#2fc39a", "#e08bbd", "#f0e442", "#4a9ee0", "#ef7d3b", "#c9ced8"]
      : ["#0072b2", "#b87a00", "#00875f", "#b0568a", "#8a7d00", "#2f6fb5", "#d55e00", "#4d5663"];
    theme.how = dark ? ["#2fc39a", "#ef7d3b", "#9aa5b5", "#e08bbd"] : ["#007a55", "#b85000", "#5d6675", "#a84f83"];
  }
  return theme;
}

export const colourOf = (player) => colours().players[player % 8];
