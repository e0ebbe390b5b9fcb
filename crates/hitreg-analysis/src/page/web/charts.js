// The charts under the field. Parts that do not depend on the time are drawn once and cached; the cursor is drawn over them.

import { colourOf, colours, enlarged, fitted, font, measure } from "page/dom.js";
import { isGapBetween, isInGap, lastAt } from "page/lookup.js";

/** The shortest visible time range, in microseconds. */
const SHORTEST = 100;

/** Charts on a canvas. `span` is the visible time range; the wheel and dragging change it. */
export function makeCharts(canvas, room, { sides }, charts, state) {
  let [GUTTER, ROW, LANE, AXIS, LINE, heights, size] = [0, 0, 0, 0, 0, [], 0];
  const kept = { canvas: document.createElement("canvas"), key: "" };

  /** All sizes scale with the text size. */
  function lay() {
    if (size === enlarged()) return;
    size = enlarged();
    [GUTTER, ROW, LANE, AXIS, LINE] = [178, 62, 13, 22, 14].map((pixels) => Math.round(pixels * size));
    heights = charts.map((chart) => (chart.kind === "marks" ? Math.max(chart.lanes.length * LANE + 26 * size, 40) : ROW));
    room.style.height = `${heights.reduce((sum, height) => sum + height, AXIS)}px`;
  }
  lay();
  const box = canvas.parentElement;
  const span = { from: state.from, to: state.to };

  const xOf = (at, width) => GUTTER + ((at - span.from) / (span.to - span.from)) * (width - GUTTER - 10);
  const timeOf = (x, width) => span.from + ((x - GUTTER) / (width - GUTTER - 10)) * (span.to - span.from);
  const isShown = ({ player, side }) => state.sides.has(side) && (state.follow === null || player === null || player === state.follow);

  function draw() {
    const { context, width, height } = fitted(canvas);
    if (width === 0) return;
    lay();
    const key = [width, height, box.scrollTop, span.from, span.to, state.follow, [...state.sides].join(), document.documentElement.dataset.theme, window.devicePixelRatio].join();
    if (key !== kept.key) {
      kept.canvas.width = canvas.width;
      kept.canvas.height = canvas.height;
      const still = kept.canvas.getContext("2d");
      still.setTransform(context.getTransform());
      drawStill(still, width, height);
      kept.key = key;
    }
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(kept.canvas, 0, 0);
    context.restore();
    drawCursor(context, width, height);
  }

  function rows(each) {
    let y = AXIS - box.scrollTop;
    charts.forEach((chart, index) => {
      each(chart, y, heights[index]);
      y += heights[index];
    });
  }

  function drawStill(context, width, height) {
    const theme = colours();
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, width, height);
    context.font = font(11);
    rows((chart, top, tall) => {
      if (top + tall < 0 || top > height) return;
      context.strokeStyle = theme.grid;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(0, top + tall - 0.5);
      context.lineTo(width, top + tall - 0.5);
      context.stroke();
      context.fillStyle = theme.ink;
      context.textAlign = "left";
      context.fillText(chart.label, 10, top + LINE);
      context.save();
      context.beginPath();
      context.rect(0, top, width, tall);
      context.clip();
      if (chart.kind === "lines") drawLines(context, chart, top, tall, width, theme);
      else drawMarks(context, chart, top, width, theme);
      context.restore();
    });
    drawAxis(context, width, height, theme);
  }

  function drawAxis(context, width, height, theme) {
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, width, AXIS);
    const step = niceStep((span.to - span.from) / 1e6 / Math.max((width - GUTTER) / 110, 1));
    context.textAlign = "center";
    context.fillStyle = theme.faint;
    context.strokeStyle = theme.grid;
    context.beginPath();
    for (let at = Math.ceil(span.from / 1e6 / step) * step; at * 1e6 <= span.to; at += step) {
      const x = xOf(at * 1e6, width);
      const words = `${at.toFixed(Math.max(0, -Math.floor(Math.log10(step))))} s`;
      // The last label ends at the canvas edge.
      context.fillText(words, Math.min(x, width - 2 - context.measureText(words).width / 2), LINE);
      context.moveTo(x, AXIS);
      context.lineTo(x, height);
    }
    context.globalAlpha = 0.6;
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Draws the minimum and the maximum of all points in a pixel. */
  function drawLines(context, chart, top, tall, width, theme) {
    const lines = chart.lines.filter(isShown);
    let [least, most, jump, isKnown] = [0, 0, 0, false];
    for (const { at, values, is_jump: jumps } of lines) {
      for (let row = Math.max(lastAt(at, span.from), 0); row < at.length && at[row] <= span.to; row += 1) {
        isKnown = true;
        if (jumps?.has(row)) {
          jump = Math.max(jump, values[row]);
          continue;
        }
        if (values[row] > most) most = values[row];
        if (values[row] < least) least = values[row];
      }
    }
    const bend = chart.scale === "power" ? (value) => Math.sign(value) * Math.abs(value) ** 0.35 : (value) => value;
    const [low, high] = [bend(least), bend(most) || 1];
    const yOf = (value) => top + tall - 8 - ((bend(value) - low) / (high - low || 1)) * (tall - 18);
    context.textAlign = "right";
    context.fillStyle = theme.faint;
    const words = isKnown ? `${measure(most)} ${chart.unit}`.trimEnd() : "not known";
    const isWide = context.measureText(`${chart.label}${words}`).width > GUTTER - 26;
    context.fillText(words, GUTTER - 8, top + (isWide ? 2 : 1) * LINE);
    if (isKnown) context.fillText(measure(least), GUTTER - 8, top + tall - 6);
    if (jump > most) {
      context.textAlign = "left";
      context.fillText(`respawns: up to ${measure(jump)}`, 10, top + tall - 6);
    }
    context.save();
    context.beginPath();
    context.rect(GUTTER, top, width - GUTTER, tall);
    context.clip();
    for (const line of lines) {
      const { at, values, player, side } = line;
      context.strokeStyle = player === null ? theme.accent : colourOf(player);
      context.globalAlpha = state.follow === null && lines.length > 4 ? 0.55 : 1;
      context.setLineDash(side === 1 ? [4, 3] : []);
      context.lineWidth = 1.2;
      context.beginPath();
      let column = null;
      for (let row = Math.max(lastAt(at, span.from), 0); row < at.length; row += 1) {
        const x = Math.round(xOf(at[row], width) * 2) / 2;
        if (column && x === column.x) {
          column.min = Math.min(column.min, values[row]);
          column.max = Math.max(column.max, values[row]);
        } else {
          if (column) stroke(context, column, yOf);
          if (isAfterAbsence(line, row)) context.moveTo(x, yOf(values[row]));
          column = { x, min: values[row], max: values[row] };
        }
        if (at[row] > span.to) break;
      }
      if (column) stroke(context, column, yOf);
      context.stroke();
    }
    context.restore();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  function drawMarks(context, chart, top, width, theme) {
    chart.lanes.forEach((lane, index) => {
      const y = top + 20 * size + index * LANE;
      context.fillStyle = theme.faint;
      context.textAlign = "right";
      context.fillText(laneText(lane, lane.counts.filter(isShown), state, sides), GUTTER - 8, y + 8 * size);
      for (const mark of lane.marks.filter(isShown)) {
        const x = xOf(mark.at, width);
        if (x < GUTTER || x > width) continue;
        context.fillStyle = mark.player === null ? theme.ink : colourOf(mark.player);
        context.fillRect(x - 0.75, y + (mark.side === 1 ? 5 : 0), 1.5, state.sides.size > 1 ? 4 : 9);
      }
    });
  }

  function drawCursor(context, width, height) {
    const theme = colours();
    const line = (at, colour, dash) => {
      const x = xOf(at, width);
      if (x < GUTTER) return;
      context.strokeStyle = colour;
      context.setLineDash(dash);
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, height);
      context.stroke();
      context.setLineDash([]);
    };
    if (state.divergence !== null) line(state.divergence, theme.changed, [6, 4]);
    line(state.at, theme.accent, []);
    context.font = font(11);
    context.textAlign = "left";
    rows((chart, top, tall) => {
      if (chart.kind !== "lines" || top < AXIS - tall || top > height) return;
      const values = chart.lines.filter(isShown).map((line) => valueAt(line, state.at)).filter((value) => value !== undefined);
      if (values.length === 0 || top + 30 < AXIS) return;
      const [low, high] = [Math.min(...values), Math.max(...values)];
      context.fillStyle = theme.accent;
      context.fillText(values.length > 1 && low !== high ? `${measure(low)} – ${measure(high)}` : measure(low), 10, top + 2 * LINE + 2);
    });
  }

  /** Zooms in time. The given time stays in place, as far as the session goes. */
  function zoomAround(times, at) {
    const [length, whole] = [span.to - span.from, state.to - state.from];
    const zoomed = Math.min(Math.max(length / times, SHORTEST), whole);
    const from = at - ((at - span.from) / length) * zoomed;
    span.from = Math.max(state.from, Math.min(from, state.to - zoomed));
    span.to = Math.min(state.to, span.from + zoomed);
  }

  return {
    draw,
    span,
    timeAt: (x) => Math.min(Math.max(timeOf(x, canvas.clientWidth), state.from), state.to),
    isPlot: (x) => x > GUTTER,
    /** The mark at a point, such as a correction; null if there is none. */
    markAt: (x, y) => {
      let found = null;
      rows((chart, top) => {
        if (chart.kind !== "marks") return;
        const lane = chart.lanes[Math.floor((y - top - 20 * size) / LANE)];
        if (y < top + 20 * size || !lane) return;
        const near = lane.marks.filter((mark) => mark.item && isShown(mark) && Math.abs(xOf(mark.at, canvas.clientWidth) - x) < 5);
        near.sort((a, b) => Math.abs(xOf(a.at, canvas.clientWidth) - x) - Math.abs(xOf(b.at, canvas.clientWidth) - x));
        found ??= near[0]?.item ?? null;
      });
      return found;
    },
    zoom: (times, x) => zoomAround(times, timeOf(x, canvas.clientWidth)),
    zoomAround,
    /** Moves the visible range so that it contains the time. */
    reveal: (at) => {
      const length = span.to - span.from;
      if (at >= span.from && at <= span.to) return;
      span.from = Math.max(state.from, Math.min(at - length / 2, state.to - length));
      span.to = span.from + length;
    },
    whole: () => Object.assign(span, { from: state.from, to: state.to }),
  };
}

/** The label of a lane, with the sum of the shown counts of each side; a dash if it is not known for the selected player. */
export function laneText({ label, isKnown }, shown, state, sides) {
  const sum = (side) => shown.filter((of) => of.side === side).reduce((total, { count }) => total + count, 0);
  const of = (side) => (state.follow === null || isKnown(sides[side], state.follow) ? sum(side) : "—");
  return [label, ...[...state.sides].sort().map((side) => (state.sides.size > 1 ? `${"AB"[side]} ${of(side)}` : of(side)))].join(" ");
}

/** Whether a line breaks before a row: records are missing there, or much more time passed than between the other rows,
    and at least 2 s. */
function isAfterAbsence({ at, gaps }, row) {
  if (row === 0) return false;
  const usual = (at[at.length - 1] - at[0]) / (at.length - 1);
  return at[row] - at[row - 1] > Math.max(2e6, 10 * usual) || isGapBetween(gaps, at[row - 1], at[row]);
}

/** The last value of a line up to a time; undefined before its first value, in a gap, and some time after a value at which
    the line ends or breaks. */
export function valueAt(line, time) {
  const { at, values, gaps } = line;
  const [row, last] = [lastAt(at, time), at.length - 1];
  const usual = last > 0 ? (at[last] - at[0]) / last : 0;
  const isLast = row === last || isAfterAbsence(line, row + 1);
  const isOver = isLast && time - at[row] > Math.max(250_000, 2 * usual);
  return isOver || isInGap(gaps, time) ? undefined : values[row];
}

function stroke(context, { x, min, max }, yOf) {
  context.lineTo(x, yOf(max));
  if (min !== max) context.lineTo(x, yOf(min));
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-6)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
}
