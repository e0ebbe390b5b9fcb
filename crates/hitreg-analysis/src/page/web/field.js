// The field seen from above: the camera, and the drawing order.

import { colours, enlarged, fitted, font } from "page/dom.js";
import { LAYERS } from "page/layers.js";
import { placeAt } from "page/lookup.js";

/** The field on a canvas. `state` is the page's state; see main.js. */
export function makeField(canvas, contents, state) {
  const camera = { x: 0, y: 0, scale: 1, fitted: false };
  const walls = wallsOf(contents.walls);
  const world = boundsOf(contents, walls);
  // The direction of +y on the canvas: 1 is up, -1 down.
  const up = contents.sides[0].settings.some(([key, value]) => key === "recorder.y_axis" && value === "down") ? -1 : 1;
  const view = { camera, walls, contents, state, up, reach: Math.max(world.right - world.left, world.top - world.bottom) };

  /** The area that the list of layers covers: the left, or the top in a narrow window. */
  function inset() {
    const { offsetWidth, offsetHeight, parentElement } = canvas.parentElement.querySelector("#layers");
    return offsetWidth < parentElement.clientWidth / 2 ? { left: offsetWidth + 12, top: 0 } : { left: 0, top: offsetHeight + 12 };
  }

  function fit(width, height) {
    const { left, top } = inset();
    camera.scale = Math.min((width - left) / Math.max(world.right - world.left, 1e-6), (height - top) / Math.max(world.top - world.bottom, 1e-6));
    camera.x = (world.left + world.right) / 2 - left / 2 / camera.scale;
    camera.y = (world.bottom + world.top) / 2 + (up * top) / 2 / camera.scale;
    Object.assign(camera, { fitted: true, whole: camera.scale });
  }

  function draw() {
    const { context, width, height } = fitted(canvas);
    if (width === 0) return;
    if (!camera.fitted) fit(width, height);
    Object.assign(view, { context, width, height, colours: colours() });
    const eyes = state.follow === null ? null : bodyOf(state.follow, state.at);
    if (state.follows && eyes) [camera.x, camera.y] = [eyes.x, eyes.y];
    view.height_of_eyes = eyes ? eyes.z : null;
    view.toX = (x) => width / 2 + (x - camera.x) * camera.scale;
    view.toY = (y) => height / 2 - up * (y - camera.y) * camera.scale;
    view.radius = Math.min(Math.max((view.reach / 160) * camera.scale, 5), 15) * enlarged();
    context.fillStyle = view.colours.field;
    context.fillRect(0, 0, width, height);
    for (const layer of LAYERS) if (state.layers.has(layer.name)) layer.draw(view);
    drawScale(view);
  }

  /** The positions of all players, from any source. */
  function bodyOf(entity, at) {
    for (const side of contents.sides) {
      const track = side.bodyOf.get(entity) ?? side.ownOf.get(entity);
      const place = track && placeAt(track, at);
      if (place) return { x: place.x, y: place.y, z: place.z };
    }
    return null;
  }

  function zoom(times, x, y) {
    const [offX, offY] = [x - view.width / 2, up * (view.height / 2 - y)];
    camera.x += offX / camera.scale;
    camera.y += offY / camera.scale;
    camera.scale = Math.min(Math.max(camera.scale * times, camera.whole / 1e4), camera.whole * 1e5);
    camera.x -= offX / camera.scale;
    camera.y -= offY / camera.scale;
  }

  return {
    draw,
    zoom: (times, x = view.width / 2, y = view.height / 2) => zoom(times, x, y),
    pan: (x, y) => {
      camera.x -= x / camera.scale;
      camera.y += (up * y) / camera.scale;
    },
    fit: () => (camera.fitted = false),
    /** Zooms in from the view of the whole field. */
    approach: () => (camera.scale = Math.max(camera.scale, 2.2 * (camera.whole ?? 0))),
    show: (places) => {
      const [xs, ys] = [places.map((place) => place[0]), places.map((place) => place[1])];
      const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
      camera.x = (left + right) / 2;
      camera.y = (bottom + top) / 2;
      const span = Math.max(right - left, top - bottom, view.reach / 12);
      const covered = inset();
      camera.scale = (0.6 * Math.min(view.width - covered.left, view.height - covered.top)) / span;
      camera.x -= covered.left / 2 / camera.scale;
      camera.y += (up * covered.top) / 2 / camera.scale;
    },
    /** The entity drawn at a point of the canvas; null if there is none. */
    hitAt: (x, y) => {
      let [best, nearest] = [null, (view.radius + 6) ** 2];
      for (const side of contents.sides) {
        for (const entity of side.somebody) {
          const place = bodyOf(entity, state.at);
          const off = place && (view.toX(place.x) - x) ** 2 + (view.toY(place.y) - y) ** 2;
          if (place && off < nearest) [best, nearest] = [entity, off];
        }
      }
      return best;
    },
    worldAt: (x, y) => [camera.x + (x - view.width / 2) / camera.scale, camera.y + (up * (view.height / 2 - y)) / camera.scale],
    camera,
  };
}

function wallsOf({ ends, of }) {
  const [x1, y1, x2, y2, bottom, top] = ends;
  const all = [...of].map((entity, row) => ({ x1: x1[row], y1: y1[row], x2: x2[row], y2: y2[row], bottom: bottom[row], top: top[row], of: entity === 0 ? null : entity - 1 }));
  const moving = new Map();
  for (const wall of all.filter((wall) => wall.of !== null)) {
    if (!moving.has(wall.of)) moving.set(wall.of, []);
    moving.get(wall.of).push(wall);
  }
  return { still: all.filter((wall) => wall.of === null), moving, paths: new Map() };
}

/** The bounds of all movement and of the walls that do not move. */
function boundsOf(contents, walls) {
  const bounds = { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity };
  const add = (x, y) => {
    bounds.left = Math.min(bounds.left, x);
    bounds.right = Math.max(bounds.right, x);
    bounds.bottom = Math.min(bounds.bottom, y);
    bounds.top = Math.max(bounds.top, y);
  };
  for (const side of contents.sides) {
    for (const track of [...side.bodies, ...side.own, ...side.views].filter((track) => !walls.moving.has(track.entity))) {
      const [xs, ys] = track.place;
      for (let row = 0; row < xs.length; row += 1) add(xs[row], ys[row]);
    }
  }
  for (const { x1, y1, x2, y2 } of walls.still) [[x1, y1], [x2, y2]].forEach(([x, y]) => add(x, y));
  if (bounds.left > bounds.right) [-1, 1].forEach((at) => add(at, at));
  const margin = 0.06 * Math.max(bounds.right - bounds.left, bounds.top - bounds.bottom, 1e-3);
  return { left: bounds.left - margin, right: bounds.right + margin, bottom: bounds.bottom - margin, top: bounds.top + margin };
}

function drawScale({ context, width, height, camera, colours: { faint } }) {
  const power = 10 ** Math.floor(Math.log10(150 / camera.scale));
  const units = [5, 2, 1].map((times) => times * power).find((length) => length * camera.scale <= 150);
  context.strokeStyle = context.fillStyle = faint;
  context.lineWidth = 2;
  context.font = font(11);
  context.textAlign = "right";
  const y = height - 36 * enlarged();
  context.beginPath();
  context.moveTo(width - 12 - units * camera.scale, y);
  context.lineTo(width - 12, y);
  context.stroke();
  context.fillText(`${units >= 1 ? units : units.toPrecision(1)} units`, width - 12, y - 6);
}
