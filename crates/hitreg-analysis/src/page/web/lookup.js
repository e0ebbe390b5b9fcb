// Looks up positions by time: the steps of clocks, and interpolation between the samples of a track.

import { fixed } from "page/dom.js";

/** The index of the last value up to the limit; -1 if all are above it. */
export function lastAt(values, limit) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The changed shots, as everywhere: without those that hit on neither side. */
export const changedShots = ({ difference }) => (difference?.hits.changed ?? []).filter(({ change }) => change !== "other_reason");

/** The name of a shot or an impact. Its index is left out if it is usual. */
export function shotName({ shooter, command, index, is_impact: isImpact }) {
  return `p${shooter}#${command}${index > 0 && index < 255 ? `.${index}` : ""}${isImpact ? " impact" : ""}`;
}

/** A player's number, and its name if it has one: `p3 Ann`. */
export function playerName(player, sides) {
  const number = `p${player}`;
  const name = sides.map((side) => side.names[player]).find(Boolean) ?? number;
  return name === number ? number : `${number} ${name}`;
}

/** The label of packets that did not arrive. Those without a reply have no direction. */
export const missingOf = (side, way) => (way === "up" || way === "↑" || side.missing_down === "lost" ? `lost ${way}` : side.missing_down);

/** The gaps in a side's records of a player, or of the server. */
export const gapsOf = ({ gaps }, player) => gaps.filter((gap) => gap.player === null || gap.player === player);

/** Whether one of the gaps is between two times of known rows. The ends of a gap are those of any records around it. */
export const isGapBetween = (gaps, before, after) => gaps.some(({ from_us: from, to_us: to }) => before < (from + to) / 2 && (from + to) / 2 <= after);

/** Whether a time is in one of the gaps. */
export const isInGap = (gaps, at) => gaps.some(({ from_us: from, to_us: to }) => from < at && at < to);

/** Whether the acks and the shots of a player are known. Without any ack, the clients predicted nothing. Bots and spectators are no clients. */
export const isClient = (side, player) => (side.acks.length > 0 ? side.acks.some((acks) => acks.player === player) : side.clockOf(player) !== null);

/** The gaps of a log as text; empty without gaps. */
export function missingRecords({ gaps }) {
  if (gaps.length === 0) return "";
  const { from_us: from, to_us: to, player } = gaps[0];
  const others = gaps.length > 1 ? ` and in ${gaps.length - 1} more ${gaps.length > 2 ? "gaps" : "gap"}` : "";
  return `records${player === null ? "" : ` of p${player}`} missing from ${fixed(from / 1e6, 1)} to ${fixed(to / 1e6, 1)} s${others}`;
}

/** Prepares a side for lookups; `index` is 0 for A and 1 for B. */
export function prepare(side, index) {
  const clocks = new Map(side.clocks.map((clock) => [clock.player, clock]));
  const timed = (track) => {
    const clock = clocks.get(track.player) ?? null;
    track.at_us = clock ? track.step.map((step) => clock.at_us[step]) : new Float64Array(0);
    return track;
  };
  side.clockOf = (player) => clocks.get(player) ?? null;
  side.bodies.forEach(timed);
  side.own.forEach(timed);
  side.views.forEach(timed);
  side.ownOf = new Map(side.own.map((track) => [track.player, track]));
  side.bodyOf = new Map(side.bodies.map((track) => [track.entity, track]));
  side.viewsOf = new Map();
  for (const track of side.views) {
    if (!side.viewsOf.has(track.player)) side.viewsOf.set(track.player, []);
    side.viewsOf.get(track.player).push(track);
  }
  /** The player whose screen is shown without server states and without a selected player. */
  side.viewer = side.views[0]?.player ?? side.clocks.find(({ player }) => player !== null)?.player ?? null;
  // If no player is known, everything that moves is shown as a player.
  side.somebody = new Set(side.players.length > 0 ? side.players : side.bodies.map((track) => track.entity));
  for (const shot of side.shots) {
    shot.name = shotName(shot);
    shot.at_us = shot.judged?.at_us ?? shot.made?.at_us ?? null;
  }
  [side.from, side.to] = spanOf(side);
  for (const item of [...side.shots, ...side.corrections]) item.side = index;
  side.shotsInTime = side.shots.filter((shot) => shot.at_us !== null).sort((a, b) => a.at_us - b.at_us);
  side.shotTimes = Float64Array.from(side.shotsInTime, (shot) => shot.at_us);
  side.counts = countsOf(side);
  side.shotNamed = new Map(side.shots.map((shot) => [shot.name, shot]));
  return side;
}

/** The first and the last time of the clocks, or of all other rows if the trace lacks the clocks' tables; infinite without rows. */
function spanOf({ clocks, acks, round_trips: trips, packets, shots, corrections }) {
  const others = [...[...acks, ...trips].map((of) => of.at_us), ...packets.map((of) => of.sent_us), ...[...shots, ...corrections].map((row) => [row.at_us])];
  const columns = clocks.length > 0 ? clocks.map((clock) => clock.at_us) : others;
  const ends = columns.flatMap((times) => [times[0], times.at(-1)]).filter(Number.isFinite);
  return ends.reduce(([from, to], at) => [Math.min(from, at), Math.max(to, at)], [Infinity, -Infinity]);
}

/** Counts as `replay` prints them; null if the trace lacks them. */
function countsOf({ shots, shot_counts: shotCounts, corrections, is_open: isOpen, knows_corrections: knows, tables }) {
  const rows = new Map(tables);
  // With a server, an empty `shots` table means that no shot was fired.
  const isJudged = shots.some((shot) => shot.judged !== null) || (!isOpen && rows.has("shots"));
  const sum = (of) => shotCounts.reduce((total, counts) => total + counts[of], 0);
  // If no shot was judged again, the hits are those that the recorded server reported, and misses are not known.
  const hasOnlyHits = sum("fired") === 0 && sum("reported") > 0;
  return {
    shots: isJudged && !hasOnlyHits ? sum("fired") : null,
    hits: isJudged ? sum(hasOnlyHits ? "reported" : "hit") : null,
    corrections: knows ? corrections.length : null,
  };
}

/** The targets that a shot hit, as the replay judges it or as the recorded server reported it; empty if unknown. */
export function victimsOf({ server, given }) {
  const target = server.target ?? (given?.target && given.target !== "?" ? given.target : null);
  const others = server.also_hit?.split("; ").map((other) => /^(entity )?\S+/.exec(other)[0]) ?? [];
  return target === null ? [] : [target, ...others];
}

const out = { x: 0, y: 0, z: 0, yaw: null, mark: 0 };

/** The position of a track at a time, in a reused object; null if it has none. */
export function placeAt(track, at) {
  const last = track.at_us.length - 1;
  const index = lastAt(track.at_us, at);
  if (index < 0 || last < 0) return null;
  const [xs, ys, zs] = track.place;
  // After its last sample, and in gaps, the position stays for a moment, so that nothing flickers between frames.
  const goesOn = index < last && (track.mark[index + 1] & 1) === 0;
  if (!goesOn && at - track.at_us[index] > 60_000) return null;
  const next = goesOn ? index + 1 : index;
  const span = track.at_us[next] - track.at_us[index];
  const share = span > 0 ? (at - track.at_us[index]) / span : 0;
  out.x = xs[index] + (xs[next] - xs[index]) * share;
  out.y = ys[index] + (ys[next] - ys[index]) * share;
  out.z = zs[index] + (zs[next] - zs[index]) * share;
  out.mark = track.mark[index] >> 1;
  out.yaw = null;
  if (track.yaw) {
    let turned = track.yaw[next] - track.yaw[index];
    if (turned > 180) turned -= 360;
    if (turned < -180) turned += 360;
    out.yaw = track.yaw[index] + turned * share;
  }
  return out;
}
