// Explains and draws the selection: a shot, a correction, a shot on two sides, or a player.

import { $, colours, count, digits, el, fixed, measure, measureWithin, ms, quantity, seconds, svg } from "page/dom.js";
import { missingOf, playerName } from "page/lookup.js";
import { came, counted, onServer } from "page/tables.js";

/** Shows the selection. */
export function showWhy(contents, selected) {
  const box = $("why");
  const parts = selected === null ? nothing() : selected.kind === "shot" ? ofShot(selected.item, contents) : selected.kind === "correction" ? ofCorrection(selected.item, contents) : selected.kind === "changed" ? ofChanged(contents, selected.item) : ofPlayer(selected.item, contents);
  box.replaceChildren(...parts.filter(Boolean));
  box.scrollTop = 0;
}

/** Says what the page cannot read in a link, before the explanation. */
export const showUnread = (sentences) => $("why").prepend(...sentences.map((words) => el("p", {}, words)));

const nothing = () => [el("p", {}, "Select a shot, a correction or a player: what happened to it, and why, comes here.")];

/** Terms with their values; unknown values are left out. */
function list(pairs) {
  const known = pairs.filter(([, words]) => words !== null && words !== undefined && words !== "");
  return el("dl", {}, ...known.flatMap(([word, words]) => [el("dt", {}, word), el("dd", {}, words)]));
}

/** Whether the log has the time of arrival of a shot's or correction's usercmd. */
const isAsReceived = (contents, { side, player, shooter, command }) => contents.sides[side].usercmds_as_received.some(([of, last]) => of === (shooter ?? player) && command <= last);

/** The time at which the client made a usercmd; null if it is not known, or if the log has the time of its arrival. */
const madeAt = (contents, item, at) => (isAsReceived(contents, item) ? null : (at ?? null));

/** A usercmd's number and time, in the words of `why`. */
function usercmd(contents, item, at) {
  if (at === null || at === undefined) return `#${item.command}; its time is not recorded`;
  return `#${item.command}, ${isAsReceived(contents, item) ? "arrived" : "made"} at ${seconds(at)}`;
}

/** The side, before the heading. */
const sideOf = (contents, { side }) => (contents.sides.length > 1 ? `${"AB"[side]}: ` : "");

/** The weapon of a shot, in a heading. */
const weaponOf = ({ weapon }) => (weapon ? ` (${weapon})` : "");

function ofShot(shot, contents, heading = `${sideOf(contents, shot)}shot ${shot.name}${weaponOf(shot)} at ${seconds(shot.at_us)}`) {
  const { judged, made, drawn } = shot;
  const madeUs = madeAt(contents, shot, made?.at_us);
  const judgedUs = judged?.at_us ?? null;
  const wait = madeUs === null || judgedUs === null ? "" : `, ${ms(judgedUs - madeUs)} after the client made it`;
  const judgedAt = judged ? `at ${seconds(judged.at_us)}${judged.tick === null ? "" : ` in tick ${judged.tick}`}${wait}` : null;
  const isImpact = shot.is_impact;
  return [
    el("h2", {}, heading),
    el("p", { className: "answer" }, shot.answer),
    drawing(shot),
    list([
      ["usercmd", usercmd(contents, shot, made?.at_us)],
      [`on the screen`, came(shot.screen)],
      ["target", chosen(shot)],
      [`drew ${shot.about ?? "no target"}`, drawn ? `${drawn.how}${drawn.category ? ` (${drawn.category})` : ""} as of ${seconds(drawn.at_us)}${drawn.age_us === null || madeUs === null ? "" : `, ${ms(drawn.age_us)} old`}` : null],
      ["between", madeOf(shot.drawn_from)],
      ["sent", shot.carried ? `at ${seconds(shot.carried.sent_us)}${shot.carried.packets > 1 ? ` in ${shot.carried.packets} packets` : ""}; ${shot.carried.arrived_us === null ? (shot.carried.is_lost ? "never arrived" : "arrival time not known") : `arrived at ${seconds(shot.carried.arrived_us)}, ${ms(shot.carried.arrived_us - shot.carried.sent_us)} later`}` : null],
      ["executed", shot.executed ?? (isImpact ? (judged.ran ? `in tick ${judged.ran[0]}` : "not known") : judgedAt)],
      ["impact", isImpact ? judgedAt : null],
      ["rewound", !judged || isImpact ? null : judged.rewind_us === null ? "not known" : judged.rewind_us === 0 ? (shot.server.reason === "launched" ? "0 ms: launched in the present" : "0 ms: judged at the present positions") : `${ms(judged.rewind_us)}, to ${seconds(judged.at_us - judged.rewind_us)}${shot.relocated?.is_judged_in_present ? `, but ${shot.about} in the present` : ""}`],
      ["between", madeOf(shot.judged_from)],
      ["rewind limit", shot.limit_words],
      ["view error", isImpact || !judged ? null : shot.without_view_error ?? `${measure(shot.view_error_units)} units between target drawn and target judged`],
      ["on the server", shot.is_reported ? `${came(onServer(shot))}, as the recorded server reported it; other data of the shot is not known` : came(shot.server)],
      ["impact", shot.impact ? came(shot.impact) : null],
      ["now visible", judged?.visible_at_present === "no" ? `no: out of sight when the server ran the shot${judged.in_cover_ms === null ? "" : `, and on its own screen for ${measure(judged.in_cover_ms)} ms`}` : judged?.visible_at_present === "yes" ? "yes: in sight when the server ran the shot" : null],
    ]),
    places(shot),
    ...otherwise(shot.rejudged ?? []),
  ];
}

/** The target and how it was chosen. */
function chosen({ about, aimed_by: by, is_impact: isImpact }) {
  const how = { hit: "the server hit this target", predicted_hit: "the shooter's screen showed a hit", nearest: "no hit; the target drawn nearest to the line of fire" }[by];
  return about && how && !isImpact ? `${about}: ${how}` : null;
}

/** The results of a shot under other settings. */
function otherwise(rejudged) {
  if (rejudged.length === 0) return [];
  const words = rejudged.map(({ what, setting, server }) => el("li", {}, `${what}: `, el("strong", {}, server ? came(server) : "not judged"), ` (${setting})`));
  return [el("h3", {}, "The same shot under other settings"), el("ul", {}, ...words), el("p", { className: "faint" }, "Only the hit test changed. Deaths and later events are as recorded.")];
}

function madeOf(from) {
  if (!from) return null;
  const at = ({ seq, server_time_us: time }) => `#${seq} (${seconds(time)})`;
  return from.after ? `snapshots ${at(from.before)} and ${at(from.after)}, ${fixed(from.fraction * 100, 0)} %` : `snapshot ${at(from.before)}, the last received, and no later one`;
}

function places({ places: all, about, line, has_view_angles: hasAngles }) {
  if (all.length === 0) return null;
  // Without view angles, no line of fire is known.
  const ofLine = (words) => (hasAngles ? words : words.filter((_, column) => column !== 2 && column !== 3));
  const head = ofLine(["", "server time", "from line", "", "source"]);
  const side = ({ off: { ahead_units: ahead, right_units: right, up_units: up }, uncertainty_units: uncertainty }) => `${measureWithin(Math.abs(right), uncertainty)} ${right < 0 ? "left" : "right"}${up === null ? "" : `, ${measureWithin(Math.abs(up), uncertainty)} ${up < 0 ? "below" : "above"}`}${ahead < 0 ? ", behind" : ""}`;
  const row = (place) => ofLine([`${place.which} (${place.which[0].toUpperCase()})`, seconds(place.at_us), place.off ? `${measureWithin(place.off.distance_units, place.uncertainty_units)} units` : "not known", place.off ? side(place) : "", place.known_by]);
  const cells = (name, words) => words.map((word) => el(name, {}, word));
  return el("table", {}, el("caption", {}, `where ${about} was${!hasAngles || line?.has_height || line?.is_flat ? "" : ", seen from above"}`), el("thead", {}, el("tr", {}, ...cells("th", head))), el("tbody", {}, ...all.map((place) => el("tr", {}, ...cells("td", row(place))))));
}

/** The targets beside the line of fire, which runs from left to right: from above, and from the side. */
function drawing(shot) {
  const known = shot.places.filter((place) => place.off);
  if (known.length === 0) return null;
  const theme = colours();
  const ink = { drawn: theme.how[0], judged: theme.changed, present: theme.faint };
  const hasHeight = known.every((place) => place.off.up_units !== null);
  const panels = [["from above: left of the aim is up", (off) => -off.right_units], ...(hasHeight ? [["from the side: above the aim is up", (off) => off.up_units]] : [])];
  const [width, height] = [520, 150];
  const ahead = known.map((place) => place.off.ahead_units);
  const middle = (Math.min(...ahead) + Math.max(...ahead)) / 2;
  const reach = Math.max(...known.flatMap(({ off }) => [Math.abs(off.ahead_units - middle) / 1.5, Math.abs(off.right_units), Math.abs(off.up_units ?? 0)]), 20);
  const scale = (height / 2 - 26) / reach;
  const drawn = panels.map(([words, up], index) => {
    const zero = index * height + height / 2 + 6;
    const group = svg("g", {}, svg("text", { x: 8, y: index * height + 15 }, words), svg("path", { d: `M0 ${zero}H${width - 8}m-8 -4l8 4l-8 4`, fill: "none", stroke: theme.ink, "stroke-dasharray": "7 4" }));
    const centreOf = ({ off }) => [width / 2 + (off.ahead_units - middle) * scale, zero - up(off) * scale];
    const centres = known.map(centreOf);
    const letters = [];
    known.forEach((place, order) => {
      const [x, y] = centres[order];
      group.append(svg("circle", { cx: x, cy: y, r: 5 + 4 * order, fill: "none", stroke: ink[place.which], "stroke-width": 2 }));
      // A letter goes to the first side of its circle where it covers no other letter or circle.
      const sides = [[-22, 4], [0, -20], [22, 4], [0, 28], [-22, -16], [22, -16], [-22, 24], [22, 24]];
      const isFree = ([right, down], distance) => [...letters, ...centres].every(([otherX, otherY]) => Math.hypot(x + right - otherX, y + down - 4 - otherY) >= distance);
      const start = [0, 1, 2][order];
      const turned = [...sides.slice(start), ...sides.slice(0, start)];
      const [right, down] = turned.find((side) => isFree(side, 17)) ?? turned[0];
      letters.push([x + right, y + down - 4]);
      group.append(svg("text", { x: x + right, y: y + down, "text-anchor": "middle", style: `fill:${ink[place.which]};font-weight:bold` }, place.which[0].toUpperCase()));
    });
    return group;
  });
  const tall = panels.length * height;
  const words = known.map((place, order) => svg("text", { x: width - 12, y: 15 + 14 * order, "text-anchor": "end", style: `fill:${ink[place.which]}` }, `${place.which[0].toUpperCase()} ${place.which}`));
  const power = 10 ** Math.floor(Math.log10(120 / scale));
  const units = [5, 2, 1].map((times) => times * power).find((length) => length * scale <= 120);
  const bar = svg("g", {}, svg("path", { d: `M${width - 12 - units * scale} ${tall - 8}h${units * scale}`, stroke: theme.faint, "stroke-width": 2 }), svg("text", { x: width - 12, y: tall - 13, "text-anchor": "end" }, `${units} units`));
  return svg("svg", { viewBox: `0 0 ${width} ${tall}`, role: "img", "aria-label": shot.answer }, ...drawn, ...words, bar);
}

function ofCorrection(item, contents) {
  const madeUs = madeAt(contents, item, item.made_us);
  const difference = ({ predicted, authoritative }) => {
    if (typeof predicted !== "number" || typeof authoritative !== "number") return null;
    const by = authoritative - predicted;
    return Number.isSafeInteger(by) ? by : Math.fround(by);
  };
  const rows = item.errors.map((error) => el("tr", {}, el("td", {}, error.field), ...[error.predicted, error.authoritative, difference(error)].map((value) => el("td", { className: "number" }, digits(value)))));
  const head = el("tr", {}, el("th", {}, "field"), ...["predicted", "actual", "difference"].map((word) => el("th", { className: "number" }, word)));
  return [
    el("h2", {}, `${sideOf(contents, item)}correction ${count(item.number)} of ${count(item.of)}${contents.sides[item.side].is_part ? " in this part," : ""} of p${item.player} at ${seconds(item.at_us)}`),
    el("p", { className: "answer" }, item.answer),
    list([
      ["usercmd", usercmd(contents, item, item.made_us)],
      ["acked", madeUs === null || item.at_us === null ? null : `${ms(item.at_us - madeUs)} later`],
      ["spans", item.commands === null ? null : `${count(item.commands)} ${item.commands === 1 ? "usercmd" : "usercmds"}`],
      ["began", item.on_ground === null ? null : item.on_ground ? "on the ground" : "in the air"],
      ["cause", item.cause.replaceAll("_", " ")],
      ["evidence", item.evidence_words],
      ["error", `${measure(item.error_units)} units; velocity ${measure(item.velocity_error_units_per_s)} units/s`],
      ["run again", item.reran === null ? null : `${count(item.reran)} ${item.reran === 1 ? "usercmd" : "usercmds"}`],
    ]),
    el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)),
  ];
}

function ofChanged(contents, row) {
  const words = { only_a: "hit in A only", only_b: "hit in B only", other_target: "hit another target", other_wound: "hit with another hitgroup, damage or pellets", other_reason: "hit in neither, for another reason or on one side only" };
  const sides = row.shots.map((shot, index) => {
    const name = `${"AB"[index]}: ${contents.sides[index].name}`;
    return el("div", {}, ...(shot ? ofShot(shot, contents, `${name}${weaponOf(shot)}`) : [el("h2", {}, name), el("p", {}, "not fired, or missing in the table")]).filter(Boolean));
  });
  return [el("h2", {}, `${row.name} at ${seconds(row.at_us)}: ${words[row.change.change] ?? row.change.change}`), el("div", { className: "sides" }, ...sides)];
}

function ofPlayer(row, contents) {
  const shots = row.shots === null ? "shots not known" : quantity(row.shots, "shot");
  const hits = row.hits === null ? "hits not known" : quantity(row.hits, "hit");
  const wounds = row.was_hit === null ? "how often it was hit is not known" : `was hit ${row.knows_victims ? "" : "at least "}${quantity(row.was_hit, "time")}`;
  return [
    el("h2", {}, sideOf(contents, row) + playerName(row.player, contents.sides)),
    list([
      ["round trip", row.p50 === null ? "not known" : `median ${ms(row.p50)}, 95 % within ${ms(row.p95)}`],
      ["frames", row.frames === null ? "not known" : count(row.frames)],
      ["corrections", row.corrections === null ? "not known" : count(row.corrections)],
      ["shots", row.hits === null ? "not known" : `${shots}, ${hits}; ${wounds}`],
      ["packets", row.down === null && row.up === null ? "loss not known" : `${counted(row.down)} ${missingOf(contents.sides[row.side], "down")}, ${counted(row.up)} lost up`],
    ]),
  ];
}
