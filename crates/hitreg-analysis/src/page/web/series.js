// Measures over time as charts, with lines of points or with marks in lanes.

import { gapsOf, isClient, isGapBetween, lastAt, missingOf } from "page/lookup.js";

/** All charts that have data. */
export function seriesOf(contents) {
  const charts = [];
  const both = contents.sides;
  const line = (label, unit, lines, more = {}) => {
    const shown = lines.filter(({ at }) => at.length > 0);
    if (shown.length > 0) charts.push({ kind: "lines", label, unit, lines: shown, ...more });
  };
  const marks = (label, lanes) => {
    const shown = lanes.filter(({ counts }) => counts.some(({ count }) => count > 0));
    if (shown.length > 0) charts.push({ kind: "marks", label, lanes: shown });
  };
  const perSide = (of) => both.flatMap((side, index) => of(side).map((entry) => ({ ...entry, side: index, gaps: gapsOf(side, entry.player) })));

  line("prediction error", "units", perSide((side) => side.acks.map(predictionError)), { scale: "power" });
  marks("corrections by cause", causes(contents));
  line("round trip", "ms", perSide((side) => side.round_trips.map(roundTrip)));
  line("jitter", "ms", perSide((side) => side.round_trips.map(jitter)));
  line("usercmds in flight", "", perSide((side) => side.round_trips.map((trips) => inFlight(side, trips))));
  line("usercmds run per frame", "", perSide((side) => side.ran.map((of) => ran(side, of))));
  // Without datagrams, a session has the usual sizes of such packets.
  const nominal = both.some(({ settings }) => settings.some(([key, value]) => key === "wire.sizes" && value === "nominal")) ? "nominal " : "";
  for (const way of ["down", "up"]) {
    line(`${nominal}bytes ${way}`, "kB/s", perSide((side) => side.packets.filter((packets) => packets.way === way && packets.bytes).map((packets) => traffic(side, packets))));
  }
  marks(`${[...new Set(both.map((side) => side.missing_down))].join(", ")}, choked, not run`, absences(contents.sides));
  line("lateness of ticks", "ms", perSide(lateness));
  return charts;
}

/** The known errors. Those of spawns, deaths and teleports are jumps, which do not measure prediction. */
function predictionError({ player, at_us: at, error_units: error, relocations }) {
  const known = [...error.keys()].filter((row) => error[row] >= 0);
  const relocated = new Set(relocations);
  const jumps = known.flatMap((row, place) => (relocated.has(row) ? [place] : []));
  return { player, at: known.map((row) => at[row]), values: known.map((row) => error[row]), is_jump: new Set(jumps) };
}

const roundTrip = ({ player, at_us: at, took_us: took }) => ({ player, at, values: took.map((us) => us / 1e3) });

/** Jitter as in RTP: a sixteenth of each change from one round trip to the next. Merged ones have the largest. */
function jitter(trips) {
  const line = roundTrip(trips);
  if (trips.all.jitter_us) return { ...line, values: trips.all.jitter_us.map((value) => value / 1e3) };
  let smooth = 0;
  const values = line.values.map((value, row) => {
    smooth += row > 0 ? (Math.abs(value - line.values[row - 1]) - smooth) / 16 : 0;
    return smooth;
  });
  return { ...line, values };
}

/** For each ack: the number of usercmds made since the acked one. */
function inFlight(side, trips) {
  const clock = side.clockOf(trips.player);
  const line = roundTrip(trips);
  if (!clock) return { ...line, at: [], values: [] };
  const made = (at) => lastAt(clock.at_us, at);
  // The time of an ack is up to 50 µs early, and a round trip up to 25 µs too long.
  return { ...line, values: line.at.map((at, row) => made(at) - made(at - line.values[row] * 1e3 + 75)) };
}

function ran(side, { player, values, steps }) {
  const clock = side.clockOf(player);
  // A log of a server lacks the usercmds of a client's frame.
  const isKnown = clock && values.some((value) => value > 0);
  return { player, at: isKnown ? (steps === 1 ? clock.at_us.subarray(0, values.length) : values.map((_, row) => clock.at_us[row * steps])) : new Float64Array(0), values };
}

const BIN_US = 250_000;

/** The traffic of each bin, without the bins that are partly in a gap. */
function traffic(side, { player, sent_us: sent, bytes, all }) {
  if (sent.length === 0) return { player, at: [], values: [] };
  const [first, width] = all?.bytes ? [all.first_us, all.bin_us] : [sent[0], BIN_US];
  const sums = all?.bytes ?? new Float64Array(Math.floor((sent[sent.length - 1] - first) / BIN_US) + 1);
  if (!all?.bytes) sent.forEach((at, row) => (sums[Math.max(0, Math.floor((at - first) / BIN_US))] += bytes[row]));
  const gaps = gapsOf(side, player);
  const isWhole = (bin) => !gaps.some(({ from_us: from, to_us: to }) => from < first + (bin + 1) * width && to > first + bin * width);
  const bins = [...sums.keys()].filter(isWhole);
  return { player, at: bins.map((bin) => first + (bin + 0.5) * width), values: bins.map((bin) => sums[bin] / (width / 1e3)) };
}

/** Regular ticks need no chart. */
function lateness(side) {
  const clock = side.clockOf(null);
  if (!clock || clock.at_us.length < 3) return [];
  const { at_us: at, number } = clock;
  // In a gap, no tick has a number.
  const gaps = gapsOf(side, null);
  const starts = [...at.keys()].filter((row) => row === 0 || isGapBetween(gaps, at[row - 1], at[row]));
  const values = starts.flatMap((start, part) => {
    const last = (starts[part + 1] ?? at.length) - 1;
    const rate = (at[last] - at[start]) / Math.max(number[last] - number[start], 1);
    return Array.from(at.subarray(start, last + 1), (time, row) => (time - at[start] - (number[start + row] - number[start]) * rate) / 1e3);
  });
  return Math.max(...values.filter((_, row) => row % 16 === 0).map(Math.abs)) < 0.05 ? [] : [{ player: null, at, values }];
}

function causes(contents) {
  const lanes = new Map();
  contents.sides.forEach((side, index) => {
    for (const item of side.corrections) {
      if (!lanes.has(item.cause)) lanes.set(item.cause, { label: item.cause.replaceAll("_", " "), marks: [], counts: [], isKnown: isClient });
      lanes.get(item.cause).counts.push({ player: item.player, side: index, count: 1 });
      lanes.get(item.cause).marks.push({ at: item.at_us, player: item.player, side: index, item: { kind: "correction", side: index, item } });
    }
  });
  for (const lane of lanes.values()) lane.marks.sort((a, b) => a.at - b.at);
  return [...lanes.values()].sort((a, b) => b.marks.length - a.marks.length);
}

/** What was lost, held back or did not run. `counts` has all of it for each player and side; of a long session, `marks` has
    only some. */
function absences(sides) {
  const missing = sides.map((side) => missingOf(side, "down"));
  const ofPackets = (way, isKnown) => (side, player) => side.packets.some((packets) => packets.player === player && packets.way === way && isKnown(packets));
  const isMissingKnown = ({ missing }) => missing !== null;
  const lane = (label, isKnown) => [label, { label, marks: [], counts: [], isKnown }];
  const lanes = new Map([
    ...missing.map((label) => lane(label, ofPackets("down", isMissingKnown))), lane("choked down", ofPackets("down", () => true)),
    lane("lost up", ofPackets("up", isMissingKnown)), lane("choked up", ofPackets("up", () => true)),
  ]);
  sides.forEach((side, index) => {
    for (const { way, player, sent_us, is_missing: isMissing, missing, choked, choked_updates: updates } of side.packets) {
      const [ofMissing, ofChoked] = [missingOf(side, way), `choked ${way}`].map((label) => lanes.get(label));
      ofMissing.counts.push({ player, side: index, count: missing ?? 0 });
      ofChoked.counts.push({ player, side: index, count: updates });
      sent_us.forEach((at, row) => {
        if (isMissing[row] === 1) ofMissing.marks.push({ at, player, side: index });
        if (choked[row] > 0) ofChoked.marks.push({ at, player, side: index });
      });
    }
    for (const { how, player, count, step } of side.unrun ?? []) {
      const label = how.replaceAll("_", " ");
      if (!lanes.has(label)) lanes.set(...lane(label, (of, player) => of.unrun !== null && of.clockOf(player) !== null));
      lanes.get(label).counts.push({ player, side: index, count });
      for (const row of step) lanes.get(label).marks.push({ at: side.clockOf(null).at_us[row], player, side: index });
    }
  });
  for (const { marks } of lanes.values()) marks.sort((a, b) => a.at - b.at);
  return [...lanes.values()];
}
