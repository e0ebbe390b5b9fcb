// The layers of the field. Each colour also has a shape, for colour-blind readers.

import { colourOf, enlarged, font } from "page/dom.js";
import { gapsOf, isInGap, lastAt, placeAt, playerName } from "page/lookup.js";

/** The shapes in drawing order; `icon` is their line in the list of layers. */
export const LAYERS = [
  { name: "walls", key: "1", label: "walls", icon: "M1 8H15", draw: drawWalls },
  { name: "drawn", key: "2", label: "drawn on a screen", icon: "M8 1L14 6L8 11L2 6Z", draw: drawViews },
  { name: "server", key: "3", label: "on the server", icon: "M3 6a5 5 0 1 0 10 0a5 5 0 1 0 -10 0", filled: true, draw: drawBodies },
  { name: "predicted", key: "4", label: "predicted", icon: "M3 1H13V11H3Z", draw: drawOwn },
  { name: "shots", key: "5", label: "shots, rewound targets", icon: "M1 10L15 2M11 2h4v4", draw: drawShots },
  { name: "packets", key: "6", label: "packets in flight", icon: "M2 10L8 2L14 10Z", draw: drawPackets },
  { name: "names", key: "7", label: "names", icon: "M3 2H13M8 2V11", draw: drawNames },
];

/** How long a shot stays visible, in microseconds. */
const SHOT_US = 350_000;

const dashes = [[], [4, 3]];

function drawWalls(view) {
  const { context, walls, colours, camera, height_of_eyes: eyes } = view;
  // Walls have two sets of lines: at the height of the followed player, and at other heights.
  const floor = eyes === null ? null : Math.round(eyes / 32) * 32;
  if (walls.paths.floor !== floor || !walls.paths.near) {
    const [near, far] = [new Path2D(), new Path2D()];
    for (const wall of walls.still) {
      const path = floor === null || (wall.bottom < floor + 56 && wall.top > floor - 24) ? near : far;
      path.moveTo(wall.x1, wall.y1);
      path.lineTo(wall.x2, wall.y2);
    }
    Object.assign(walls.paths, { near, far, floor });
  }
  context.save();
  context.translate(view.toX(0), view.toY(0));
  context.scale(camera.scale, -camera.scale);
  context.lineWidth = 1 / camera.scale;
  context.strokeStyle = colours.wall;
  context.globalAlpha = 0.28;
  context.stroke(walls.paths.far);
  context.globalAlpha = floor === null ? 0.6 : 0.95;
  context.stroke(walls.paths.near);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.beginPath();
  const isMissing = isInGap(gapsOf(view.contents.sides[0], null), view.state.at);
  for (const [entity, lines] of walls.moving) {
    const track = trackOf(view, entity);
    const place = track && placeAt(track, view.state.at);
    if (track && !place && isMissing) continue;
    const [x, y] = place ? [place.x, place.y] : [0, 0];
    for (const wall of lines) {
      context.moveTo(wall.x1 + x, wall.y1 + y);
      context.lineTo(wall.x2 + x, wall.y2 + y);
    }
  }
  context.globalAlpha = 0.45;
  context.stroke();
  context.restore();
}

/** The sources for a position. */
function trackOf({ contents, state }, entity) {
  const side = contents.sides[0];
  return side.bodyOf.get(entity) ?? (side.viewsOf.get(state.follow ?? side.viewer) ?? []).find((track) => track.entity === entity);
}

const shownSides = ({ contents, state }) => contents.sides.map((side, index) => ({ side, index })).filter(({ index }) => state.sides.has(index));

function disc(view, place, colour, { filled, dash, radius = view.radius, alpha = 1 }) {
  const { context } = view;
  const [x, y] = [view.toX(place.x), view.toY(place.y)];
  context.globalAlpha = alpha;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if (filled) {
    context.fillStyle = colour;
    context.fill();
  } else {
    context.setLineDash(dash);
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.stroke();
    context.setLineDash([]);
  }
  if (place.yaw !== null) {
    const turn = (place.yaw * Math.PI) / 180;
    context.beginPath();
    context.moveTo(x + Math.cos(turn) * radius, y - view.up * Math.sin(turn) * radius);
    context.lineTo(x + Math.cos(turn) * radius * 1.9, y - view.up * Math.sin(turn) * radius * 1.9);
    context.strokeStyle = colour;
    context.lineWidth = 2.5;
    context.stroke();
  }
  context.globalAlpha = 1;
}

function drawBodies(view) {
  const { state, walls, context, colours } = view;
  const sides = shownSides(view);
  for (const { side, index } of sides) {
    for (const track of side.bodies) {
      if (walls.moving.has(track.entity)) continue;
      const place = placeAt(track, state.at);
      if (!place) continue;
      const isPlayer = side.somebody.has(track.entity);
      const radius = (isPlayer ? 1 : 0.5) * view.radius + 3 * index;
      const colour = isPlayer ? colourOf(track.entity) : colours.faint;
      disc(view, place, colour, { filled: index === 0, dash: [5, 3], radius, alpha: index === 0 ? 0.85 : 1 });
    }
  }
  if (sides.length < 2) return;
  // A line connects a player's positions on the two sides if they differ.
  context.strokeStyle = colours.changed;
  context.lineWidth = 1.5;
  for (const track of sides[0].side.bodies) {
    const other = sides[1].side.bodyOf.get(track.entity);
    const from = placeAt(track, state.at);
    const [x, y] = from ? [view.toX(from.x), view.toY(from.y)] : [0, 0];
    const to = from && other && placeAt(other, state.at);
    if (!to || Math.hypot(view.toX(to.x) - x, view.toY(to.y) - y) < 2) continue;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(view.toX(to.x), view.toY(to.y));
    context.stroke();
  }
}

function drawOwn(view) {
  const { context, state } = view;
  for (const { side, index } of shownSides(view)) {
    for (const track of side.own) {
      if (state.follow !== null && track.player !== state.follow) continue;
      const place = placeAt(track, state.at);
      if (!place) continue;
      const [x, y, r] = [view.toX(place.x), view.toY(place.y), view.radius + 2 + 3 * index];
      context.strokeStyle = colourOf(track.player);
      context.lineWidth = 1.6;
      context.setLineDash(dashes[index]);
      context.strokeRect(x - r, y - r, 2 * r, 2 * r);
      context.setLineDash([]);
      // Without server states, these are the bodies.
      if (side.bodyOf.size === 0) disc(view, place, colourOf(track.player), { filled: true });
    }
  }
}

function drawViews(view) {
  const { context, state, walls, colours } = view;
  for (const { side, index } of shownSides(view)) {
    const eyes = state.follow ?? (side.bodyOf.size === 0 ? side.viewer : null);
    const isAlone = side.bodyOf.size === 0;
    for (const track of side.viewsOf.get(eyes) ?? []) {
      if (walls.moving.has(track.entity) || track.entity === track.player) continue;
      const place = placeAt(track, state.at);
      if (!place) continue;
      const [x, y, r] = [view.toX(place.x), view.toY(place.y), view.radius * 1.25 + 3 * index];
      context.beginPath();
      context.moveTo(x, y - r);
      context.lineTo(x + r, y);
      context.lineTo(x, y + r);
      context.lineTo(x - r, y);
      context.closePath();
      // Without server states, these are the bodies.
      const body = side.somebody.has(track.entity) ? colourOf(track.entity) : colours.faint;
      if (isAlone) {
        context.globalAlpha = 0.35;
        context.fillStyle = body;
        context.fill();
        context.globalAlpha = 1;
      }
      context.strokeStyle = isAlone ? body : colours.how[place.mark % 4];
      context.lineWidth = 1.6;
      context.setLineDash(place.mark === 0 ? dashes[index] : [2, 2]);
      context.stroke();
      context.setLineDash([]);
    }
  }
}

function drawShots(view) {
  const { state } = view;
  for (const { side, index } of shownSides(view)) {
    const selected = state.selected?.kind === "shot" ? side.shotNamed.get(state.selected.item.name) : undefined;
    const last = lastAt(side.shotTimes, state.at);
    for (let row = last; row >= 0 && state.at - side.shotTimes[row] <= SHOT_US; row -= 1) {
      const shot = side.shotsInTime[row];
      if (shot.line && shot !== selected) drawShot(view, shot, 0.15 + 0.7 * (1 - (state.at - shot.at_us) / SHOT_US), index, false);
    }
    if (selected?.line) drawShot(view, selected, 1, index, true);
  }
}

function drawShot(view, shot, alpha, index, isSelected) {
  const { context, colours } = view;
  const isHit = shot.server.reason === "hit";
  const [yaw, pitch] = [(shot.line.yaw * Math.PI) / 180, (shot.line.pitch * Math.PI) / 180];
  const ahead = Math.max(...shot.places.map((place) => place.off?.ahead_units ?? 0));
  const length = ahead > 0 ? ahead * 1.08 : view.reach * 0.35;
  const flat = shot.line.has_height ? Math.cos(pitch) * length : length;
  const [fromX, fromY] = [view.toX(shot.line.from[0]), view.toY(shot.line.from[1])];
  const [toX, toY] = [view.toX(shot.line.from[0] + Math.cos(yaw) * flat), view.toY(shot.line.from[1] + Math.sin(yaw) * flat)];
  context.globalAlpha = alpha;
  context.strokeStyle = isHit ? colours.hit : colours.miss;
  context.lineWidth = isSelected ? 2.5 : 1.5;
  context.setLineDash(isHit ? dashes[index] : [7, 5]);
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
  context.setLineDash([]);
  if (isHit) {
    context.beginPath();
    context.arc(toX, toY, 3, 0, 2 * Math.PI);
    context.fillStyle = colours.hit;
    context.fill();
  }
  const letters = { drawn: "D", judged: "J", present: "P" };
  shot.places.forEach((place, order) => {
    if (!place.origin || ((!isSelected || index > 0) && place.which !== "judged")) return;
    const [x, y] = [view.toX(place.origin[0]), view.toY(place.origin[1])];
    context.strokeStyle = place.which === "present" ? colours.faint : place.which === "judged" ? colours.changed : colours.how[0];
    context.lineWidth = 1.8;
    context.beginPath();
    context.arc(x, y, view.radius * (1.15 + 0.28 * order), 0, 2 * Math.PI);
    context.stroke();
    if (isSelected && index === 0) {
      context.fillStyle = context.strokeStyle;
      context.font = font(12, "bold");
      context.textAlign = "center";
      // The name is at the upper right, so the third letter is below.
      const [right, down] = [[-14, -view.radius * 1.8 - 4], [0, -view.radius * 1.8 - 4], [0, view.radius * 1.8 + 14]][order];
      context.fillText(letters[place.which], x + right, y + down);
    }
  });
  context.globalAlpha = 1;
}

function drawPackets(view) {
  const { context, state, width, colours, contents } = view;
  const side = contents.sides[0];
  if (side.packets.length === 0) return;
  const server = { x: width / 2, y: 22 };
  let isAny = false;
  for (const packets of side.packets) {
    if (state.follow !== null && packets.player !== state.follow) continue;
    const track = side.ownOf.get(packets.player) ?? side.bodyOf.get(packets.player);
    const place = track && placeAt(track, state.at);
    if (!place) continue;
    isAny = true;
    const client = { x: view.toX(place.x), y: view.toY(place.y) };
    const [from, to] = packets.way === "up" ? [client, server] : [server, client];
    const { sent_us: sent, transit_us: transit, is_missing: isMissing } = packets;
    context.fillStyle = context.strokeStyle = packets.way === "up" ? colours.how[1] : colours.how[0];
    for (let row = lastAt(sent, state.at); row >= 0 && state.at - sent[row] < 1_000_000; row -= 1) {
      const isLost = isMissing[row] === 1;
      // No recording shows where a packet without a reply, or in flight at the end, was.
      if (isLost ? packets.way === "down" && side.missing_down !== "lost" : transit[row] < 0) continue;
      const share = isLost ? (state.at - sent[row]) / 120_000 : (state.at - sent[row]) / transit[row];
      if (share > 1) continue;
      const [x, y] = [from.x + (to.x - from.x) * (isLost ? share / 2 : share), from.y + (to.y - from.y) * (isLost ? share / 2 : share)];
      context.beginPath();
      if (isLost) {
        context.moveTo(x - 4, y - 4);
        context.lineTo(x + 4, y + 4);
        context.moveTo(x - 4, y + 4);
        context.lineTo(x + 4, y - 4);
        context.lineWidth = 2;
        context.stroke();
      } else if (packets.way === "up") {
        context.moveTo(x, y - 4);
        context.lineTo(x + 4, y + 3);
        context.lineTo(x - 4, y + 3);
        context.fill();
      } else {
        context.fillRect(x - 2.5, y - 2.5, 5, 5);
      }
    }
  }
  if (!isAny) return;
  context.fillStyle = colours.raised;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  const [wide, tall] = [32 * enlarged(), 11 * enlarged()];
  context.fillRect(server.x - wide, server.y - tall, 2 * wide, 2 * tall);
  context.strokeRect(server.x - wide, server.y - tall, 2 * wide, 2 * tall);
  context.fillStyle = colours.ink;
  context.font = font(12);
  context.textAlign = "center";
  context.fillText("server", server.x, server.y + 4);
}

/** The name of a player; null for other entities on a screen, such as items and missiles. */
export function nameOf(entity, sides) {
  return sides.some((side) => side.somebody.has(entity)) ? playerName(entity, sides) : null;
}

/** The names on the field, each with the place of a shape that is drawn. */
export function namedPlaces({ contents, state, walls }) {
  const named = new Map();
  const add = (entity, track) => {
    const word = nameOf(entity, contents.sides);
    const place = track && word !== null && !named.has(entity) && !walls.moving.has(entity) && placeAt(track, state.at);
    if (place) named.set(entity, { entity, word, x: place.x, y: place.y });
  };
  for (const { side } of shownSides({ contents, state })) {
    // With a selected player, no other player's predicted position is drawn.
    const own = (entity) => (state.follow === null || state.follow === entity ? side.ownOf.get(entity) : undefined);
    for (const entity of side.somebody) add(entity, side.bodyOf.get(entity) ?? own(entity));
    if (side.bodyOf.size === 0) for (const track of side.viewsOf.get(state.follow ?? side.viewer) ?? []) add(track.entity, track);
  }
  return [...named.values()];
}

function drawNames(view) {
  const { context, state, colours } = view;
  context.font = font(12);
  context.textAlign = "left";
  for (const { entity, word, ...place } of namedPlaces(view)) {
    const [x, y] = [view.toX(place.x) + view.radius + 5, view.toY(place.y) - view.radius];
    context.lineWidth = 3;
    context.strokeStyle = colours.field;
    context.strokeText(word, x, y);
    context.fillStyle = entity === state.follow ? colours.accent : colours.ink;
    context.fillText(word, x, y);
  }
}
