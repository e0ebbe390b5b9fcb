// The tables beside the field: sorted and filtered. Only visible rows are in the document.

import { $, count, el, fixed, measure, quantity, widthOf } from "page/dom.js";
import { changedShots, isClient, missingOf, playerName, shotName, victimsOf } from "page/lookup.js";

/** A result in the words of `why`: `hit p3, head, 80 damage`. */
export function came({ reason, target, hitgroup, damage, also_hit: others }) {
  const hit = [reason || "not known", target].filter(Boolean).join(" ");
  return `${[hit, hitgroup, damage ? `${damage} damage` : ""].filter(Boolean).join(", ")}${others ? `; also ${others}` : ""}`;
}

/** A result in a table, which has room for one hitgroup or the number of other targets: `hit p3 head 80`. */
const cameInBrief = ({ reason, target, hitgroup, damage, also_hit: others }) => [reason || "not known", target, others ? null : hitgroup, damage || null, others ? `+${others.split("; ").length}` : null].filter(Boolean).join(" ");

/** The result on the server, which may be a reported hit that is not judged again. */
export const onServer = (shot) => (shot.is_reported ? { reason: "hit", target: victimsOf(shot)[0] ?? "an unknown player", damage: shot.given?.damage } : shot.server);

/** The columns of a result: briefly, and in full for the filter and under the mouse. */
const result = (label, of) => ({ label, of: (row) => (of(row) ? cameInBrief(of(row)) : "not fired"), full: (row) => (of(row) ? came(of(row)) : ""), mark: (row) => (of(row)?.reason === "hit" ? "hit" : "") });

/** The lists, by tab. Each column has its text and its sort key. */
export function tablesOf(contents) {
  const { sides } = contents;
  const letters = sides.map((_, index) => "AB"[index]);
  const both = (of) => sides.flatMap(of);
  const byTime = (rows) => (sides.length > 1 ? rows.sort((a, b) => (a.at_us ?? Infinity) - (b.at_us ?? Infinity)) : rows);
  /** A count for each side; a dash if it is unknown. */
  const total = (of) => sides.map((side, index) => `${sides.length > 1 ? `${letters[index]} ` : ""}${counted(of(side))}`).join(" · ");
  const tables = [];
  const time = (row) => (row.at_us === null ? "?" : fixed(row.at_us / 1e6, 2));
  const at = { label: "at", of: (row) => row.at_us, text: time, number: true };
  const side = sides.length > 1 ? [{ label: "", title: "side", of: (row) => letters[row.side] }] : [];
  if (contents.difference) {
    tables.push({
      name: "Changed",
      total: count(changedShots(contents).length),
      empty: ["No shot changed."],
      rows: changedRows(contents),
      select: (row) => ({ kind: "changed", item: row }),
      columns: [
        at,
        { label: "shot", of: (row) => row.name },
        ...sides.map((_, index) => result(`in ${letters[index]}`, (row) => row.shots[index] && onServer(row.shots[index]))),
      ],
    });
  }
  tables.push(
    {
      // If only reported hits are known, the list shows these.
      name: sides.every(({ counts }) => counts.shots === null && counts.hits !== null) ? "Hits" : "Shots",
      rows: byTime(both((side) => side.shots)),
      total: total((side) => side.counts.shots ?? side.counts.hits),
      empty: why(sides, (side) => side.counts.hits, "No shot was fired.", "Shots and hits are not known", "hits: "),
      // A projectile counts as one shot, and each of its impacts has a row. A shot whose usercmd did not run does not count.
      note: (rows) => {
        const [impacts, unrun] = [(row) => row.is_impact, (row) => row.server.reason === "not run"].map((of) => rows.filter(of).length);
        const parts = [impacts > 0 && quantity(impacts, "impact"), unrun > 0 && `${count(unrun)} not run`].filter(Boolean);
        return parts.length > 0 ? `, with ${parts.join(" and ")}` : "";
      },
      select: (item) => ({ kind: "shot", side: item.side, item }),
      columns: [
        ...side,
        at,
        { label: "shot", of: (shot) => shot.name, text: (shot) => shot.name.replace(" impact", "") },
        { label: "weapon", of: (shot) => (shot.is_impact ? "impact" : shot.weapon), full: (shot) => shot.weapon },
        result("on screen", (shot) => shot.screen),
        result("on server", onServer),
        { label: "back", of: (shot) => shot.judged?.rewind_us || null, text: (shot) => (shot.judged?.rewind_us ? fixed(shot.judged.rewind_us / 1e3, 0) : "–"), title: "rewind, ms", number: true },
        { label: "error", of: (shot) => shot.view_error_units, text: (shot) => (shot.view_error_units === null ? "–" : measure(shot.view_error_units)), title: "view error, units", number: true },
      ],
    },
    {
      name: "Corrections",
      rows: byTime(both((side) => side.corrections)),
      total: total((side) => side.counts.corrections),
      empty: why(sides, (side) => side.counts.corrections, "No prediction was corrected.", "Corrections are not known", "corrections: "),
      groups: (row) => row.cause.replaceAll("_", " "),
      select: (item) => ({ kind: "correction", side: item.side, item }),
      columns: [
        ...side,
        at,
        { label: "player", of: (row) => `p${row.player}` },
        { label: "usercmd", of: (row) => row.command, text: (row) => `#${row.command}`, number: true },
        { label: "cause", of: (row) => row.cause.replaceAll("_", " ") },
        { label: "error", of: (row) => row.error_units, text: (row) => measure(row.error_units), title: "position error, units", number: true },
        { label: "first field", of: (row) => row.errors[0]?.field ?? "" },
        { label: "run again", of: (row) => row.reran, text: (row) => row.reran ?? "—", number: true },
      ],
    },
    {
      name: "Players",
      rows: both(playerRows),
      total: count(new Set(both((side) => side.players)).size),
      empty: ["No player is known."],
      select: (row) => ({ kind: "player", item: row }),
      columns: [
        ...side,
        { label: "player", of: (row) => row.player, text: (row) => playerName(row.player, sides) },
        ...[["rtt p50", "p50"], ["p95", "p95"]].map(([label, key]) => ({ label, of: (row) => row[key], text: (row) => (row[key] === null ? "—" : fixed(row[key] / 1e3, 1)), title: `${label}, ms`, number: true })),
        ...[["frames", "frames"], ["corr.", "corrections"], ["shots", "shots"], ["hits", "hits"], ["was hit", "was_hit"], [[...new Set(sides.map((side) => missingOf(side, "↓")))].join(", "), "down"], ["lost ↑", "up"]].map(([label, key]) => ({ label, of: (row) => row[key], text: (row) => counted(row[key], key === "was_hit" && !row.knows_victims), title: key === "was_hit" ? "a + means at least: a hit has no known victim, or the hits of other players are not known" : undefined, number: true })),
      ],
    },
    { name: "About", rows: [], columns: [], about: true },
  );
  return tables;
}

/** Whether a text has a word of the filter. A number matches only as a whole: `p1` matches `p1#27`, but not `p11`. */
function matches(text, word) {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const end = at + word.length;
    const cutsNumber = [at, end].some((place) => isDigit(text[place - 1]) && isDigit(text[place]));
    if (!cutsNumber) return true;
  }
  return false;
}

const isDigit = (letter) => /^\d$/.test(letter ?? "");

/** A count: `—` if unknown, with a `+` if it is a minimum. */
export const counted = (number, isLeast = false) => (number === null ? "—" : `${count(number)}${isLeast ? "+" : ""}`);

/** The text of an empty list: that there were none, or the reason from a side's notes why this is unknown. */
function why(sides, of, none, unknown, note) {
  return sides.map((side, index) => {
    const words = of(side) === null ? `${unknown}: ${side.notes.find((text) => text.startsWith(note))?.slice(note.length) ?? "the trace lacks them"}.` : none;
    return sides.length > 1 ? `${"AB"[index]}: ${words}` : words;
  });
}

function changedRows(contents) {
  const { sides } = contents;
  return changedShots(contents).map((change) => {
    const name = shotName(change);
    const shots = sides.map((side) => side.shotNamed.get(name) ?? null);
    return { name, change, shots, at_us: change.at_us };
  });
}

/** Whether all shots of a player that hit are known: from a server, or from the player's own recording. */
const knowsShotsOf = (side, player) => !side.is_open || isClient(side, player);

function playerRows(side, index) {
  return side.players.map((player) => {
    const trips = side.round_trips.find((trips) => trips.player === player);
    const missing = (way) => side.packets.find((packets) => packets.player === player && packets.way === way)?.missing ?? null;
    const { counts } = side;
    const ofShots = side.shot_counts.find((counts) => counts.player === player);
    const { fired, hit, reported } = ofShots ?? { fired: 0, hit: 0, reported: 0 };
    const knowsShots = ofShots !== undefined || knowsShotsOf(side, player);
    const hits = side.shots.filter((shot) => shot.server.reason === "hit");
    const victims = hits.map(victimsOf);
    const knows_victims = victims.every((of) => of.length > 0) && side.players.every((other) => other === player || knowsShotsOf(side, other));
    const wounds = victims.filter((of) => of.includes(`p${player}`)).length;
    return {
      player,
      side: index,
      knows_victims,
      at_us: null,
      p50: trips ? trips.all.p50_us : null,
      p95: trips ? trips.all.p95_us : null,
      frames: side.clockOf(player)?.at_us.length ?? null,
      corrections: counts.corrections === null || !isClient(side, player) ? null : side.corrections.filter((item) => item.player === player).length,
      shots: counts.shots === null || !knowsShots ? null : fired,
      hits: counts.hits === null || !knowsShots ? null : counts.shots === null ? reported : hit,
      was_hit: counts.hits === null || (wounds === 0 && !knows_victims) ? null : wounds,
      down: missing("down"),
      up: missing("up"),
    };
  });
}

/** The tabs, the filter and the table. `choose` gets the clicked row, and only sides in `state` are listed. */
export function makeTables(contents, state, choose) {
  const tables = tablesOf(contents);
  const box = $("table-box");
  const shown = { table: null, rows: [], sorted: null, falling: false, selected: null };
  const tabs = tables.map((table, index) => {
    const label = table.about ? table.name : `${table.name} ${table.total}`;
    const tab = el("button", { id: `tab-${index}`, role: "tab", type: "button", "aria-controls": box.id, title: `${table.name} (Alt+${index + 1})`, onclick: () => open(index) }, label);
    $("tabs").append(tab);
    return tab;
  });

  function open(index) {
    Object.assign(shown, { table: tables[index], sorted: null, falling: false });
    tabs.forEach((tab, place) => tab.setAttribute("aria-selected", place === index));
    box.setAttribute("aria-labelledby", tabs[index].id);
    $("filter").value = "";
    $("filters").parentElement.classList.toggle("about", Boolean(tables[index].about));
    refresh();
  }

  const textOf = (column, row) => String(column.text ? column.text(row) : column.of(row) ?? "");

  function refresh() {
    const { table, sorted, falling } = shown;
    box.replaceChildren();
    box.scrollTop = 0;
    if (table.about) return box.append(about(contents));
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const visible = table.rows.filter((row) => row.side === undefined || state.sides.has(row.side));
    shown.rows = visible.filter((row) => {
      const text = table.columns.map((column) => `${textOf(column, row)} ${column.full?.(row) ?? ""}`).join(" ").toLowerCase();
      return words.every((word) => matches(text, word));
    });
    if (sorted) {
      const by = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
      // Unknown values are last in both orders.
      const isUnknown = (row) => Number(sorted.of(row) === null);
      shown.rows = [...shown.rows].sort((a, b) => isUnknown(a) - isUnknown(b) || by(sorted.of(a), sorted.of(b)) * (falling ? -1 : 1));
    }
    $("count").textContent = `${count(shown.rows.length)} of ${quantity(visible.length, "row")}${table.note?.(shown.rows) ?? ""}`;
    if (table.rows.length === 0) return box.append(...table.empty.map((words) => el("p", { className: "empty" }, words)));
    if (table.groups) box.append(groups(table, visible));
    const widths = widthsOf(table);
    const head = el("tr", {}, ...table.columns.map((column, index) => {
      const title = `${column.title ? `${column.title}; ` : ""}sort by ${column.label || column.title}`;
      // A button, so that the keyboard reaches it. An empty head has the name of its column.
      const button = el("button", { type: "button", "aria-label": column.label || column.title }, column.label || "\u00a0");
      const cell = el("th", { className: column.number ? "number" : "", onclick: () => sort(column), title }, button);
      cell.style.width = `${widths[index]}px`;
      if (sorted === column) cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      return cell;
    }));
    shown.body = el("tbody");
    const element = el("table", {}, el("thead", {}, head), shown.body);
    // If the columns do not fit, the box scrolls.
    element.style.minWidth = `${widths.reduce((sum, width) => sum + width, 0)}px`;
    box.append(element);
    fill();
  }

  /** The width of each column: for its heading and all its texts, except very long ones. */
  function widthsOf(table) {
    const size = 0.95 * parseFloat(getComputedStyle(document.body).fontSize);
    const padding = 0.5 * parseFloat(getComputedStyle(document.documentElement).fontSize) + 2;
    return table.columns.map((column) => {
      const texts = new Map();
      for (const row of table.rows) {
        const [text, isBold] = [textOf(column, row), Boolean(column.mark?.(row))];
        // Texts of equal length and weight have similar widths, so only a few are measured.
        const key = `${text.length} ${isBold}`;
        const few = texts.get(key) ?? new Set();
        if (few.size < 40) texts.set(key, few.add(text));
      }
      const heading = widthOf(`${column.label}${column === shown.sorted ? " ↓" : ""}`, size, 600);
      const cells = [...texts].flatMap(([key, few]) => [...few].map((text) => widthOf(text, size, key.endsWith("true") ? 600 : 400)));
      return Math.ceil(Math.min(cells.reduce((most, width) => Math.max(most, width), heading), 18 * size) + padding);
    });
  }

  /** A button for each group of rows, with the number of its rows on each visible side. */
  function groups(table, rows) {
    const counts = new Map();
    for (const row of rows) {
      const name = table.groups(row);
      if (!counts.has(name)) counts.set(name, contents.sides.map(() => 0));
      counts.get(name)[row.side] += 1;
    }
    const total = ([, numbers]) => numbers.reduce((sum, number) => sum + number, 0);
    const words = (numbers) => numbers.map((number, side) => `${"AB"[side]} ${count(number)}`).filter((_, side) => state.sides.has(side));
    const buttons = [...counts].sort((a, b) => total(b) - total(a)).map(([name, numbers]) => el("button", { type: "button", onclick: () => {
      $("filter").value = $("filter").value === name ? "" : name;
      refresh();
    } }, `${name} ${numbers.length > 1 ? words(numbers).join(" · ") : count(numbers[0])}`));
    const line = el("div", {}, ...buttons);
    line.style.cssText = "display:flex;flex-wrap:wrap;gap:.3rem;padding:.4rem .6rem";
    return line;
  }

  function sort(column) {
    shown.falling = shown.sorted === column ? !shown.falling : Boolean(column.number);
    shown.sorted = column;
    const isByKeyboard = document.activeElement.matches("th > :focus-visible");
    refresh();
    if (isByKeyboard) box.querySelectorAll("th > button")[shown.table.columns.indexOf(column)].focus();
  }

  /** Puts the visible rows into the document, and space for the others. */
  function fill() {
    const { table, rows, body } = shown;
    if (!body || table.about) return;
    const tall = 1.7 * parseFloat(getComputedStyle(document.documentElement).fontSize) + 1;
    const from = Math.max(0, Math.floor(box.scrollTop / tall) - 10);
    const to = Math.min(rows.length, from + Math.ceil(box.clientHeight / tall) + 24);
    const pad = (height) => {
      const cell = el("td", { colSpan: table.columns.length });
      cell.style.height = `${height}px`;
      return el("tr", { className: "pad" }, cell);
    };
    const line = (row) => {
      const cells = table.columns.map((column) => el("td", { className: column.number ? "number" : "", title: column.full?.(row) || textOf(column, row) }, el("span", { className: column.mark?.(row) ?? "" }, textOf(column, row))));
      const element = el("tr", { className: "row", onclick: () => choose(table.select(row)) }, ...cells);
      element.setAttribute("aria-selected", row === shown.selected);
      return element;
    };
    body.replaceChildren(pad(from * tall), ...rows.slice(from, to).map(line), pad((rows.length - to) * tall));
    shown.tall = tall;
  }

  box.addEventListener("scroll", fill);
  new ResizeObserver(fill).observe(box);
  $("filter").addEventListener("input", refresh);
  $("filter").addEventListener("keydown", (event) => {
    if (event.key === "Enter") $("filter").blur();
    if (event.key !== "Escape") return;
    // A browser may empty the box without an `input` event.
    event.preventDefault();
    $("filter").value = "";
    refresh();
  });
  open(Math.max(tables.findIndex((table) => table.rows.length > 0), 0));

  return {
    refresh,
    open: (index) => tables[index] && open(index),
    names: tables.map((table) => table.name),
    /** Marks a row, and scrolls to it if it is listed. */
    mark: (item) => {
      shown.selected = item;
      const place = shown.rows.indexOf(item);
      if (place >= 0 && shown.tall) {
        const top = place * shown.tall;
        if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * shown.tall) box.scrollTop = top - box.clientHeight / 2;
      }
      fill();
    },
    /** Sorts by the next column, or reverses the order. */
    order: (turn) => {
      const { table, sorted } = shown;
      if (table.columns.length > 0) sort(turn && sorted ? sorted : table.columns[(table.columns.indexOf(sorted) + 1) % table.columns.length]);
    },
    /** Selects the row of a shot, in the first table that lists the shot. */
    choose: ({ name }) => {
      const index = tables.findIndex((table) => table.rows.some((row) => row.name === name));
      if (shown.table !== tables[index]) open(index);
      choose(shown.table.select(shown.table.rows.find((row) => row.name === name)));
    },
    /** The row before or after the marked row. */
    step: (by) => {
      const place = shown.rows.indexOf(shown.selected);
      const row = shown.rows[place < 0 ? 0 : Math.min(Math.max(place + by, 0), shown.rows.length - 1)];
      if (row) choose(shown.table.select(row));
    },
  };
}

/** The notes about the shown data and its limits. */
function about(contents) {
  const parts = contents.sides.flatMap((side, index) => {
    const name = contents.sides.length > 1 ? `${"AB"[index]}: ${side.name}` : side.name;
    const [places, drawn] = side.exactness;
    const tables = side.tables.map(([table, rows]) => el("tr", {}, el("td", {}, table), el("td", { className: "number" }, count(rows))));
    const settings = side.settings.map(([key, value]) => el("tr", {}, el("td", {}, key), el("td", {}, value)));
    return [
      el("h2", {}, name),
      el("p", {}, `${side.game || "a game without a name"}${side.map ? ` on ${side.map}` : ""}, ${side.mode}. Bodies are drawn within ${measure(places.tolerance + places.unit)} units of where the trace has them, and look within ${measure(places.degrees + 0.5)}° of where they look there, what screens showed within ${measure(drawn.tolerance + drawn.unit)}; figures of shots and corrections are exact.`),
      side.notes.length > 0 ? el("h2", {}, "What it cannot know") : null,
      el("ul", {}, ...side.notes.map((note) => el("li", {}, note))),
      side.thinned.length > 0 ? el("h2", {}, "What it leaves out of a long session") : null,
      side.thinned.length > 0 ? el("p", {}, "Every shot and every correction is listed, and all counts are exact. Paths and charts have fewer points:") : null,
      side.thinned.length > 0 ? el("ul", {}, ...side.thinned.map((note) => el("li", {}, note))) : null,
      el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "table"), el("th", { className: "number" }, "rows"))), el("tbody", {}, ...tables)),
      el("h2", {}, "Settings"),
      el("table", {}, el("tbody", {}, ...settings)),
    ].filter(Boolean);
  });
  return el("div", { className: "about" }, ...parts, el("p", {}, contents.written_by));
}
