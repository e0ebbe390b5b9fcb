// The tables beside the field: sorted, filtered, and only as many rows in the document as are seen.

import { $, count, el, measure, ms, seconds } from "page/dom.js";

const came = (outcome) => (outcome ? [outcome.reason || "not known", outcome.target, outcome.hitgroup, outcome.damage || null].filter((word) => word !== null && word !== undefined && word !== "none" && word !== "").join(" ") : "not fired");

/** How wide a column is whose longest text has so many characters, and is short in most sessions. */
const wide = (least, texts) => `${texts.reduce((most, text) => Math.max(most, 0.6 * text.length + 1), least)}em`;

/** What is listed, by tab. Each column says what it shows, what it sorts by, and how wide it is. */
export function tablesOf(contents) {
  const [first] = contents.sides;
  const tables = [];
  const time = (row) => (row.at_us === null ? "?" : (row.at_us / 1e6).toFixed(2));
  const at = { label: "at", of: (row) => row.at_us, text: time, width: wide(4.2, first.shots.slice(-1).map(time)), number: true };
  if (contents.difference) {
    tables.push({
      name: "Changed",
      rows: changedRows(contents),
      select: (row) => ({ kind: "changed", item: row }),
      columns: [
        at,
        { label: "who", of: (row) => row.name, width: "6em" },
        { label: "in A", of: (row) => came(row.change.a), mark: (row) => (row.change.a?.reason === "hit" ? "hit" : "") },
        { label: "in B", of: (row) => came(row.change.b), mark: (row) => (row.change.b?.reason === "hit" ? "hit" : "") },
      ],
    });
  }
  tables.push(
    {
      name: "Shots",
      rows: first.shots,
      select: (item) => ({ kind: "shot", side: 0, item }),
      columns: [
        at,
        { label: "shot", of: (shot) => shot.name, width: wide(6, first.shots.map((shot) => shot.name.split(" ")[0])) },
        { label: "weapon", of: (shot) => shot.weapon, width: "5.4em" },
        { label: "on screen", of: (shot) => came(shot.screen), mark: (shot) => (shot.screen.reason === "hit" ? "hit" : "") },
        { label: "on server", of: (shot) => came(shot.server), mark: (shot) => (shot.server.reason === "hit" ? "hit" : "") },
        { label: "back", of: (shot) => shot.judged?.rewind_us ?? -1, text: (shot) => (shot.judged?.rewind_us ? (shot.judged.rewind_us / 1e3).toFixed(0) : "–"), width: "3.6em", number: true },
        { label: "error", of: (shot) => shot.view_error_units ?? -1, text: (shot) => (shot.view_error_units === null ? "–" : measure(shot.view_error_units)), width: "4em", number: true },
      ],
    },
    {
      name: "Corrections",
      rows: first.corrections,
      groups: (row) => row.cause.replaceAll("_", " "),
      select: (item) => ({ kind: "correction", side: 0, item }),
      columns: [
        at,
        { label: "who", of: (row) => `p${row.player}`, width: "3.2em" },
        { label: "usercmd", of: (row) => row.command, text: (row) => `#${row.command}`, width: "5em", number: true },
        { label: "cause", of: (row) => row.cause.replaceAll("_", " ") },
        { label: "units off", of: (row) => row.error_units ?? -1, text: (row) => measure(row.error_units), width: "5em", number: true },
        { label: "first field", of: (row) => row.errors[0]?.field ?? "" },
        { label: "re-run", of: (row) => row.reran ?? -1, text: (row) => row.reran ?? "?", width: "4em", number: true },
      ],
    },
    {
      name: "Players",
      rows: playerRows(first),
      select: (row) => ({ kind: "player", item: row }),
      columns: [
        { label: "who", of: (row) => row.player, text: (row) => `p${row.player}`, width: "3em" },
        ...[["rtt p50", "p50"], ["p95", "p95"]].map(([label, key]) => ({ label, of: (row) => row[key] ?? -1, text: (row) => (row[key] === null ? "?" : ms(row[key])), width: "5.2em", number: true })),
        ...[["frames", "frames"], ["corr.", "corrections"], ["shots", "shots"], ["hits", "hits"], ["was hit", "was_hit"], ["lost ↓", "down"], ["lost ↑", "up"]].map(([label, key]) => ({ label, of: (row) => row[key] ?? -1, text: (row) => (row[key] === null ? "?" : count(row[key])), number: true })),
      ],
    },
    { name: "About", rows: [], columns: [], about: true },
  );
  return tables;
}

function changedRows({ sides, difference }) {
  return difference.hits.changed.map((change) => {
    const suffix = change.index === 255 ? " impact" : change.index > 0 ? `.${change.index}` : "";
    const name = `p${change.shooter}#${change.command}${suffix}`;
    const shots = sides.map((side) => side.shotNamed.get(name) ?? null);
    const times = [change.a?.at_us, change.b?.at_us].filter((time) => time !== undefined && time !== null);
    return { name, change, shots, at_us: times.length > 0 ? Math.min(...times) : null };
  });
}

function playerRows(side) {
  return side.players.map((player) => {
    const acks = side.acks.find((acks) => acks.player === player);
    const trips = acks ? acks.round_trip_us.filter((trip) => trip >= 0).sort() : [];
    const nth = (share) => (trips.length > 0 ? trips[Math.max(Math.ceil(share * trips.length) - 1, 0)] : null);
    const lost = (way) => {
      const packets = side.packets.find((packets) => packets.player === player && packets.way === way);
      return packets ? packets.transit_us.reduce((sum, took) => sum + (took < 0 ? 1 : 0), 0) : null;
    };
    const shots = side.shots.filter((shot) => shot.shooter === player && shot.index !== 255);
    const hits = side.shots.filter((shot) => shot.server.reason === "hit");
    return {
      player,
      at_us: null,
      p50: nth(0.5),
      p95: nth(0.95),
      frames: side.clockOf(player)?.at_us.length ?? 0,
      corrections: side.corrections.filter((item) => item.player === player).length,
      shots: side.shots.length > 0 ? shots.length : null,
      hits: side.shots.length > 0 ? hits.filter((shot) => shot.shooter === player).length : null,
      was_hit: side.shots.length > 0 ? hits.filter((shot) => shot.server.target === `p${player}`).length : null,
      down: lost("down"),
      up: lost("up"),
    };
  });
}

/** The tabs, the filter and the table; `choose` is told what is clicked. */
export function makeTables(contents, choose) {
  const tables = tablesOf(contents);
  const box = $("table-box");
  const shown = { table: null, rows: [], sorted: null, falling: false, selected: null };
  const tabs = tables.map((table, index) => {
    const label = table.about ? table.name : `${table.name} ${count(table.rows.length)}`;
    const tab = el("button", { role: "tab", type: "button", title: `${table.name} (Alt+${index + 1})`, onclick: () => open(index) }, label);
    $("tabs").append(tab);
    return tab;
  });

  function open(index) {
    Object.assign(shown, { table: tables[index], sorted: null, falling: false });
    tabs.forEach((tab, place) => tab.setAttribute("aria-selected", place === index));
    $("filter").value = "";
    $("filters").style.visibility = tables[index].about ? "hidden" : "visible";
    refresh();
  }

  const textOf = (column, row) => String(column.text ? column.text(row) : column.of(row) ?? "");

  function refresh() {
    const { table, sorted, falling } = shown;
    box.replaceChildren();
    box.scrollTop = 0;
    if (table.about) return box.append(about(contents));
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    shown.rows = table.rows.filter((row) => {
      const text = table.columns.map((column) => textOf(column, row)).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    if (sorted) {
      const by = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
      shown.rows = [...shown.rows].sort((a, b) => by(sorted.of(a), sorted.of(b)) * (falling ? -1 : 1));
    }
    $("count").textContent = `${count(shown.rows.length)} of ${count(table.rows.length)}`;
    if (table.groups && table.rows.length > 0) box.append(groups(table));
    const head = el("tr", {}, ...table.columns.map((column) => {
      const cell = el("th", { className: column.number ? "number" : "", onclick: () => sort(column), title: `sort by ${column.label}` }, column.label);
      cell.style.width = column.width ?? "auto";
      if (sorted === column) cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      return cell;
    }));
    shown.body = el("tbody");
    box.append(el("table", {}, el("thead", {}, head), shown.body));
    fill();
  }

  function groups(table) {
    const counts = new Map();
    for (const row of table.rows) counts.set(table.groups(row), (counts.get(table.groups(row)) ?? 0) + 1);
    const buttons = [...counts].sort((a, b) => b[1] - a[1]).map(([name, number]) => el("button", { type: "button", onclick: () => {
      $("filter").value = $("filter").value === name ? "" : name;
      refresh();
    } }, `${name} ${count(number)}`));
    const line = el("div", {}, ...buttons);
    line.style.cssText = "display:flex;flex-wrap:wrap;gap:.3rem;padding:.4rem .6rem";
    return line;
  }

  function sort(column) {
    shown.falling = shown.sorted === column ? !shown.falling : Boolean(column.number);
    shown.sorted = column;
    refresh();
  }

  /** Puts the rows into the document that are seen, and room for the others. */
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
      const cells = table.columns.map((column) => el("td", { className: column.number ? "number" : "", title: textOf(column, row) }, el("span", { className: column.mark?.(row) ?? "" }, textOf(column, row))));
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
  open(Math.max(tables.findIndex((table) => table.rows.length > 0), 0));

  return {
    open: (index) => tables[index] && open(index),
    names: tables.map((table) => table.name),
    /** Marks a row, and brings it into sight where it is listed. */
    mark: (item) => {
      shown.selected = item;
      const place = shown.rows.indexOf(item);
      if (place >= 0 && shown.tall) {
        const top = place * shown.tall;
        if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * shown.tall) box.scrollTop = top - box.clientHeight / 2;
      }
      fill();
    },
    /** Sorts by the column after the one that it is sorted by, or turns the order round. */
    order: (turn) => {
      const { table, sorted } = shown;
      if (table.columns.length > 0) sort(turn && sorted ? sorted : table.columns[(table.columns.indexOf(sorted) + 1) % table.columns.length]);
    },
    /** Chooses the row of a shot's name in the table that is open. */
    choose: (name) => {
      const row = shown.table.rows.find((row) => row.name === name);
      if (row) choose(shown.table.select(row));
    },
    /** The row before or after the one that is marked. */
    step: (by) => {
      const place = shown.rows.indexOf(shown.selected);
      const row = shown.rows[place < 0 ? 0 : Math.min(Math.max(place + by, 0), shown.rows.length - 1)];
      if (row) choose(shown.table.select(row));
    },
  };
}

/** What is shown here, and what cannot be. */
function about(contents) {
  const parts = contents.sides.flatMap((side, index) => {
    const name = contents.sides.length > 1 ? `${"AB"[index]}: ${side.name}` : side.name;
    const [places, drawn] = side.exactness;
    const tables = side.tables.map(([table, rows]) => el("tr", {}, el("td", {}, table), el("td", { className: "number" }, count(rows))));
    const settings = side.settings.map(([key, value]) => el("tr", {}, el("td", {}, key), el("td", {}, value)));
    return [
      el("h2", {}, name),
      el("p", {}, `${side.game || "a game without a name"}${side.map ? ` on ${side.map}` : ""}, ${side.mode || "unknown"} loop. Bodies are drawn within ${measure(places.tolerance + places.unit)} units of where the trace has them, what screens showed within ${measure(drawn.tolerance + drawn.unit)}; figures of shots and corrections are exact.`),
      side.notes.length > 0 ? el("h2", {}, "What it cannot know") : null,
      el("ul", {}, ...side.notes.map((note) => el("li", {}, note))),
      el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "table"), el("th", { className: "number" }, "rows"))), el("tbody", {}, ...tables)),
      el("h2", {}, "Settings"),
      el("table", {}, el("tbody", {}, ...settings)),
    ].filter(Boolean);
  });
  const box = el("div", {}, ...parts, el("p", {}, contents.written_by));
  box.style.padding = ".6rem .8rem";
  return box;
}

export { came };
