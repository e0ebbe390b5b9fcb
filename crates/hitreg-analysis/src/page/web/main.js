// The page: its state, the controls that change it, and redrawing.

import { makeCharts } from "page/charts.js";
import { read } from "page/data.js";
import { $, colours, el, fitted, fixed, quantity, seconds, svg } from "page/dom.js";
import { makeField } from "page/field.js";
import { LAYERS } from "page/layers.js";
import { readLink } from "page/link.js";
import { changedShots, gapsOf, isInGap, lastAt, missingRecords, playerName, prepare } from "page/lookup.js";
import { seriesOf } from "page/series.js";
import { makeTables } from "page/tables.js";
import { showUnread, showWhy } from "page/why.js";

const SPEEDS = [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8];
const KEYS = [
  ["space", "play, pause"], [", .", "a tick back, on"], ["< >", "a client frame back, on (of the player whose screen is shown)"],
  ["← →", "0.1 s back, on; with Shift 1 s"], ["Home End", "to the beginning, to the end"], ["- +", "slower, faster"],
  ["[ ]", "the screen of the previous, the next player"], ["F", "follow the player, or stop"], ["0", "the whole field and the whole time"],
  ["Z X", "zoom in, out"], ["W A S D", "pan"], ["1 … 7", "layers on and off"], ["8 9", "side A, side B on and off"],
  ["J K", "the next, the previous row of the table"], ["N P", "the next, the previous shot in time"], ["G", "to the first divergence"],
  ["U I", "zoom in time, out"], ["O", "sort the table by the next column; with Shift reverse it"], ["/", "filter the table; Enter keeps the filter, Escape removes it"], ["Alt+1 … 5", "the tabs"], ["T", "light, dark"], ["?", "these keys"],
];

try {
  start(await read($("data")));
} catch (error) {
  $("failed").hidden = false;
  $("failed").textContent = `This page cannot be shown: ${error.message}`;
  throw error;
}

function start(contents) {
  contents.sides.forEach(prepare);
  const [first] = contents.sides;
  const players = [...new Set(contents.sides.flatMap((side) => side.players))].sort((a, b) => a - b);
  /** The clock of a player, or of the server, on the first side that has it. */
  const clockOf = (player) => contents.sides.map((side) => side.clockOf(player)).find(Boolean) ?? null;
  const ends = contents.sides.filter((side) => Number.isFinite(side.from));
  const state = {
    from: Math.min(...ends.map((side) => side.from), ...(ends.length === 0 ? [0] : [])),
    to: Math.max(...ends.map((side) => side.to), ...(ends.length === 0 ? [1e6] : [])),
    at: 0, playing: false, speed: 1, follow: null, follows: false, selected: null,
    layers: new Set(LAYERS.map((layer) => layer.name)),
    sides: new Set(contents.sides.keys()),
    divergence: contents.difference?.first?.place.at_us ?? null,
    isTimed: ends.length > 0,
  };
  // A single moment also has a length, for the scales of the slider and the charts.
  state.to = Math.max(state.to, state.from + 1);
  state.at = state.from;
  describe(contents, state);
  const field = makeField($("field"), contents, state);
  const charts = makeCharts($("charts"), $("charts-room"), contents, seriesOf(contents), state);
  const tables = makeTables(contents, state, choose);
  const drawn = [];
  let [asked, before] = [false, null];

  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(frame);
  }

  function frame(now) {
    asked = false;
    if (state.playing) {
      // After the page was suspended, time does not jump.
      state.at += before === null ? 0 : Math.min(now - before, 100) * 1e3 * state.speed;
      if (state.at >= state.to) [state.at, state.playing] = [state.to, false];
      charts.reveal(state.at);
    }
    before = state.playing ? now : null;
    const start = performance.now();
    field.draw();
    charts.draw();
    drawMarks();
    showTime();
    drawn.push(performance.now() - start);
    if (drawn.length > 2000) drawn.shift();
    if (state.playing) redraw();
  }

  function seek(at) {
    state.at = Math.min(Math.max(at, state.from), state.to);
    charts.reveal(state.at);
    redraw();
  }

  function showTime() {
    $("slider").value = String(Math.round(((state.at - state.from) / (state.to - state.from)) * 10_000));
    $("clock").textContent = !state.isTimed ? "times not known" : `${fixed(state.at / 1e6, 3)} of ${fixed(state.to / 1e6, 1)} s`;
    $("slider").setAttribute("aria-valuetext", $("clock").textContent);
    $("play").textContent = state.playing ? "pause" : "play";
    const clock = clockOf(null);
    const frames = state.follow === null ? null : clockOf(state.follow);
    const number = (of) => (of && of.at_us.length > 0 ? of.number[Math.max(lastAt(of.at_us, state.at), 0)] : null);
    const missing = isInGap(gapsOf(first, state.follow), state.at) ? "records missing" : "";
    $("at").textContent = [clock ? `tick ${number(clock)}` : "", frames ? `usercmd #${number(frames)}` : "", missing].filter(Boolean).join("  ");
  }

  const marks = { key: "" };
  const isShown = (_, side) => state.sides.has(side);
  /** Marks above and below the slider: shots of the first visible side, corrections, and the first divergence. */
  function drawMarks() {
    const { context, width, height } = fitted($("marks"));
    const key = [width, height, document.documentElement.dataset.theme, ...state.sides].join();
    if (key === marks.key) return;
    marks.key = key;
    const theme = colours();
    context.clearRect(0, 0, width, height);
    const xOf = (at) => ((at - state.from) / (state.to - state.from)) * (width - 3) + 1.5;
    context.fillStyle = theme.line;
    context.fillRect(0, height / 2 - 1, width, 2);
    const mark = (at, colour, y, tall, wide = 1.5) => {
      context.fillStyle = colour;
      context.fillRect(xOf(at) - wide / 2, y, wide, tall);
    };
    for (const { from_us: from, to_us: to } of first.gaps) mark((from + to) / 2, theme.miss, height / 2 - 3, 6, Math.max(xOf(to) - xOf(from), 3));
    const shown = contents.sides.filter(isShown);
    for (const item of shown.flatMap((side) => side.corrections)) mark(item.at_us, theme.how[3], height / 2 + 4 + 7 * item.side, 6, 1);
    for (const shot of shown[0]?.shots ?? []) {
      const isHit = shot.server.reason === "hit";
      mark(shot.at_us, isHit ? theme.hit : theme.miss, height / 2 - (isHit ? 12 : 8), isHit ? 10 : 6, 1);
    }
    for (const change of changedShots(contents)) mark(change.at_us, theme.changed, height / 2 - 14, 12, 2);
    if (state.divergence !== null) mark(state.divergence, theme.changed, 2, height - 4, 2);
  }

  /** Selects a shot, a correction, a changed shot or a player, and moves to its time and place. */
  function choose(selected) {
    const { item, kind } = selected;
    state.selected = kind === "changed" ? { kind: "shot", item: item.shots.find(Boolean) ?? item } : selected;
    if (kind === "player") setEyes(item.player);
    else {
      state.playing = false;
      seek(item.at_us ?? state.at);
      const shot = state.selected.item;
      const places = shot.places?.filter((place) => place.origin).map((place) => place.origin) ?? [];
      if (shot.line && places.length > 0) {
        state.follows = false;
        field.show([shot.line.from, ...places]);
      } else if (kind === "correction") setEyes(item.player);
    }
    tables.mark(item);
    showWhy(contents, selected);
    redraw();
  }

  function setEyes(player) {
    state.follow = player;
    state.follows = player !== null;
    if (player !== null) field.approach();
    $("follow").value = player === null ? "" : String(player);
    redraw();
  }

  function stepEyes(by) {
    const all = [null, ...players];
    setEyes(all[(all.indexOf(state.follow) + by + all.length) % all.length]);
  }

  /** Moves to the next or the previous step of a clock. */
  function step(clock, by) {
    if (!clock || clock.at_us.length === 0) return;
    state.playing = false;
    const index = lastAt(clock.at_us, by < 0 ? state.at - 1 : state.at);
    seek(clock.at_us[Math.min(Math.max(by < 0 ? index : index + 1, 0), clock.at_us.length - 1)]);
  }
  const viewer = first.viewer ?? players[0];
  const stepTick = (by) => step(clockOf(null) ?? clockOf(viewer), by);
  const stepFrame = (by) => step(clockOf(state.follow ?? viewer), by);

  function stepShot(by) {
    const times = contents.sides.filter(isShown).flatMap((side) => side.shotsInTime).sort((a, b) => a.at_us - b.at_us);
    const next = by > 0 ? times.find((shot) => shot.at_us > state.at) : times.findLast((shot) => shot.at_us < state.at);
    if (next) choose({ kind: "shot", side: next.side, item: next });
  }

  function setSpeed(by) {
    const index = Math.min(Math.max(SPEEDS.indexOf(state.speed) + by, 0), SPEEDS.length - 1);
    state.speed = SPEEDS[index];
    $("speed").value = String(state.speed);
  }

  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    $("theme").textContent = name === "dark" ? "light" : "dark";
    for (const word of $("legend").children) word.style.color = colours().how[word.dataset.how % 4];
    redraw();
    if (state.selected) showWhy(contents, state.selected);
  }
  const play = () => {
    if (state.at >= state.to) state.at = state.from;
    state.playing = !state.playing;
    redraw();
  };
  const toggle = (set, value, button) => {
    if (!set.delete(value)) set.add(value);
    button?.setAttribute("aria-pressed", set.has(value));
    redraw();
  };

  // Layers and sides.
  const layerButtons = LAYERS.map((layer) => {
    const icon = svg("svg", { viewBox: "0 0 16 12" }, svg("path", { d: layer.icon, fill: layer.filled ? "currentColor" : "none", stroke: "currentColor", "stroke-width": 1.6 }));
    const button = el("button", { type: "button", title: `${layer.label} (${layer.key})`, onclick: () => toggle(state.layers, layer.name, button) }, icon, layer.label);
    button.setAttribute("aria-pressed", "true");
    return button;
  });
  const sideButtons = contents.sides.length < 2 ? [] : contents.sides.map((side, index) => {
    const button = el("button", { type: "button", title: `${side.name} (${index + 8})`, onclick: () => (toggle(state.sides, index, button), tables.refresh()) }, index === 0 ? "side A: filled, solid lines" : "side B: rings, dashed lines");
    button.setAttribute("aria-pressed", "true");
    return button;
  });
  $("layers").append(...layerButtons, ...sideButtons);

  const legend = first.how.map((name, how) => {
    const word = el("span", {}, `◇ ${name}`);
    word.dataset.how = how;
    return word;
  });
  $("legend").append(...(first.bodies.length > 0 ? legend : []));

  // Controls.
  $("speed").append(...SPEEDS.map((speed) => el("option", { value: String(speed) }, `× ${speed}`)));
  $("speed").value = "1";
  $("speed").addEventListener("change", () => (state.speed = Number($("speed").value)));
  $("follow").append(el("option", { value: "" }, "none"), ...players.map((player) => el("option", { value: String(player) }, playerName(player, contents.sides))));
  $("follow").addEventListener("change", () => setEyes($("follow").value === "" ? null : Number($("follow").value)));
  $("play").addEventListener("click", play);
  $("tick-back").addEventListener("click", () => stepTick(-1));
  $("tick-on").addEventListener("click", () => stepTick(1));
  $("frame-back").addEventListener("click", () => stepFrame(-1));
  $("frame-on").addEventListener("click", () => stepFrame(1));
  $("slider").addEventListener("input", () => {
    state.playing = false;
    seek(state.from + (Number($("slider").value) / 10_000) * (state.to - state.from));
  });
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  const divergence = () => state.divergence !== null && (state.playing = false, seek(state.divergence));
  $("divergence").addEventListener("click", divergence);
  $("help").append(el("h2", {}, "Keys"), el("dl", {}, ...KEYS.flatMap(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)])));
  const help = () => ($("help").open ? $("help").close() : $("help").showModal());
  $("help-button").addEventListener("click", help);
  $("help").addEventListener("click", () => $("help").close());

  // Mouse input on the field.
  const canvas = $("field");
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.offsetX, y: event.offsetY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = [event.offsetX - held.x, event.offsetY - held.y];
    if (!held.moved && Math.hypot(x, y) < 4) return;
    Object.assign(held, { x: event.offsetX, y: event.offsetY, moved: true });
    state.follows = false;
    field.pan(x, y);
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && !held.moved) setEyes(field.hitAt(event.offsetX, event.offsetY));
    held = null;
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    field.zoom(1.0015 ** -event.deltaY, event.offsetX, event.offsetY);
    redraw();
  }, { passive: false });

  // Mouse input on the charts.
  const plot = $("charts");
  let dragged = false;
  const seekTo = (event) => {
    state.playing = false;
    seek(charts.timeAt(event.offsetX));
  };
  plot.addEventListener("pointerdown", (event) => {
    if (!charts.isPlot(event.offsetX)) return;
    const mark = charts.markAt(event.offsetX, event.offsetY);
    if (mark) return choose(mark);
    dragged = true;
    plot.setPointerCapture(event.pointerId);
    seekTo(event);
  });
  plot.addEventListener("pointermove", (event) => dragged && seekTo(event));
  plot.addEventListener("pointerup", () => (dragged = false));
  plot.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && plot.parentElement.scrollHeight > plot.parentElement.clientHeight + 1) return;
    event.preventDefault();
    charts.zoom(1.002 ** -(event.deltaY || event.deltaX), event.offsetX);
    redraw();
  }, { passive: false });
  plot.addEventListener("dblclick", () => (charts.whole(), redraw()));
  plot.parentElement.addEventListener("scroll", redraw);

  // Keyboard input.
  const pan = (x, y) => {
    state.follows = false;
    field.pan(x, y);
    redraw();
  };
  const zoomAll = (times) => {
    field.zoom(times);
    redraw();
  };
  const zoomTime = (times) => {
    charts.zoomAround(times, state.at);
    redraw();
  };
  const whole = () => {
    state.follows = false;
    field.fit();
    charts.whole();
    redraw();
  };
  const keys = {
    " ": play, ",": () => stepTick(-1), ".": () => stepTick(1), "<": () => stepFrame(-1), ">": () => stepFrame(1),
    Home: () => seek(state.from), End: () => seek(state.to), "-": () => setSpeed(-1), "+": () => setSpeed(1), "=": () => setSpeed(1),
    "[": () => stepEyes(-1), "]": () => stepEyes(1), f: () => { state.follows = !state.follows; redraw(); }, 0: whole,
    z: () => zoomAll(1.25), x: () => zoomAll(0.8), w: () => pan(0, 60), s: () => pan(0, -60), a: () => pan(60, 0), d: () => pan(-60, 0),
    8: () => sideButtons[0]?.click(), 9: () => sideButtons[1]?.click(), j: () => tables.step(1), k: () => tables.step(-1),
    u: () => zoomTime(2), i: () => zoomTime(0.5), o: (event) => tables.order(event.shiftKey), n: () => stepShot(1), p: () => stepShot(-1), g: divergence, t: () => $("theme").click(), "?": help,
    "/": () => $("filter").focus(),
  };
  LAYERS.forEach((layer, index) => (keys[layer.key] = () => layerButtons[index].click()));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return document.activeElement.blur();
    if (event.altKey && /^[1-9]$/.test(event.key)) {
      event.preventDefault();
      return tables.open(Number(event.key) - 1);
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=search], select")) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault();
      state.playing = false;
      return seek(state.at + (event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 1e6 : 1e5));
    }
    // The space key presses a focused button, so it does not toggle playback there.
    if (event.key === " " && event.target.matches("button")) return;
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });

  /** Shows what the address asks for, and says which of its values have no meaning. */
  function followAddress() {
    const { theme, eyes, at, shot, unread } = readLink(location.hash, { players, shots: contents.sides.flatMap((side) => side.shots) });
    if (theme !== undefined) setTheme(theme);
    if (eyes !== undefined) setEyes(eyes);
    if (at !== undefined) {
      state.playing = false;
      seek(at);
    }
    if (shot !== undefined) tables.choose(shot);
    else {
      state.selected = null;
      tables.mark(null);
      showWhy(contents, null);
      redraw();
    }
    showUnread(unread);
  }

  new ResizeObserver(redraw).observe(document.body);
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  field.draw();
  followAddress();
  addEventListener("hashchange", followAddress);
  redraw();
  // For tests, which drive the page from outside.
  window.hitreg = { state, contents, drawn, seek, choose, setEyes, setTheme, charts, field, redraw };
  document.documentElement.dataset.ready = "yes";
}

/** The head of the page. */
function describe(contents, state) {
  const [first] = contents.sides;
  const names = contents.sides.map((side) => side.name);
  document.title = `hitreg report: ${names.join(" | ")}`;
  $("title").textContent = first.map ? `${first.game || "a session"} on ${first.map}` : first.game || "a session";
  const { shots, hits, corrections } = first.counts;
  const fight = hits === null ? "shots and hits not known" : shots === null ? `${quantity(hits, "hit")}, misses not known` : `${quantity(shots, "shot")}, ${quantity(hits, "hit")}`;
  const facts = [state.isTimed ? `${fixed((state.to - state.from) / 1e6, 1)} s` : "times not known", quantity(first.players.length, "player"), first.mode, missingRecords(first), fight, corrections === null ? "corrections not known" : quantity(corrections, "correction")];
  $("subtitle").textContent = contents.difference ? contents.difference.answer : facts.filter(Boolean).join(" · ");
  $("subtitle").title = `${$("subtitle").textContent} (${names.join(" | ")})`;
  if (state.divergence !== null) {
    $("divergence").hidden = false;
    $("divergence").textContent = `first divergence: ${seconds(state.divergence)}`;
    $("divergence").title = `${contents.difference.divergence} (G)`;
  }
}
