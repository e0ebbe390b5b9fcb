// Tests pages of `hitreg report` in a real browser: node drive.mjs FOLDER SCREENSHOTS, with puppeteer-core in
// HITREG_TEST_PUPPETEER. A failed check throws an error and gives a nonzero exit code.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [folder, screenshots] = process.argv.slice(2);
const puppeteer = createRequire(path.join(process.env.HITREG_TEST_PUPPETEER, "from.js"))("puppeteer-core");
const browser = await puppeteer.launch({ executablePath: process.env.HITREG_TEST_CHROMIUM, headless: true, args: ["--no-sandbox"] });
fs.mkdirSync(screenshots, { recursive: true });

/** A page, and what went wrong on it. */
async function open(name, width = 1280, height = 800) {
  const page = await browser.newPage();
  const wrong = [];
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("dialog", (dialog) => wrong.push(`a dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || wrong.push(`asks for ${request.url()}`));
  await page.setViewport({ width, height });
  await page.evaluateOnNewDocument(() => {
    window.shifts = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (window.shifts += entry.value))).observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(`file://${folder}/${name}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes", { timeout: 120_000 });
  await settle(page);
  const value = (text) => page.evaluate(text);
  return { page, wrong, value };
}

const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)))));
const at = (value) => value("window.hitreg.state.at");

async function keysAndSlider() {
  const { page, wrong, value } = await open("one.html");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    await settle(page);
  };
  const start = await at(value);
  await press("ArrowRight");
  assert.equal(await at(value), start + 100_000, "an arrow goes on by 0.1 s");
  await press("End");
  assert.equal(await at(value), await value("window.hitreg.state.to"));
  await press("Home", ".", ".");
  const ticks = await value("Array.from(window.hitreg.contents.sides[0].clockOf(null).at_us.slice(0, 3))");
  assert.equal(await at(value), ticks[2], "two ticks on from the first");
  await press(",");
  assert.equal(await at(value), ticks[1], "a tick back");
  await press("]", ">");
  assert.equal(await value("window.hitreg.state.follow"), 0);
  assert.ok((await value("Array.from(window.hitreg.contents.sides[0].clockOf(0).at_us)")).includes(await at(value)), "a frame of p0");
  await press("Space");
  await new Promise((done) => setTimeout(done, 400));
  await press("Space");
  const played = await at(value);
  assert.ok(played > ticks[2] + 50_000, `it plays: ${played}`);
  assert.equal(await value("window.hitreg.state.playing"), false);
  await press("2");
  assert.equal(await value("window.hitreg.state.layers.has('drawn')"), false);
  await press("2", "n");
  assert.equal(await value("window.hitreg.state.selected.kind"), "shot");
  assert.match(await value("document.getElementById('why').textContent"), /shot p\d#\d+/);
  const slider = await page.$("#slider");
  const box = await slider.boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await settle(page);
  const share = ((await at(value)) - start) / ((await value("window.hitreg.state.to")) - start);
  assert.ok(Math.abs(share - 0.5) < 0.01, `the middle of the slider is the middle of the time: ${share}`);
  await press("/");
  await page.keyboard.type("missed");
  await settle(page);
  const rows = await value("[...document.querySelectorAll('tr.row')].map((row) => row.textContent)");
  assert.ok(rows.length > 3 && rows.every((row) => row.includes("missed")), "the filter leaves what it says");
  const listed = () => value("document.getElementById('count').textContent");
  const [some, all] = (await listed()).match(/\d+/g);
  assert.ok(Number(some) < Number(all));
  await press("Enter", "j");
  assert.equal(await listed(), `${some} of ${all} rows`, "Enter leaves the filter");
  assert.equal(await value("document.querySelectorAll('tr.row[aria-selected=true]').length"), 1, "keys work outside of the filter");
  await press("/", "Escape");
  const [impacts, unrun] = await value("((shots) => [shots.filter((shot) => shot.is_impact).length, shots.filter((shot) => shot.judged === null).length])(window.hitreg.contents.sides[0].shots)");
  assert.ok(impacts > 1);
  assert.equal(await listed(), `${all} of ${all} rows, with ${impacts} impacts${unrun > 0 ? ` and ${unrun} not run` : ""}`, "Escape removes the filter");
  assert.equal(Number(all), (await value("window.hitreg.contents.sides[0].counts.shots")) + impacts + unrun);
  assert.equal(await value("document.getElementById('filter').value"), "");
  await press("o");
  assert.ok(await value("document.querySelector('th[aria-sort]') !== null"), "the table is sorted by a key");
  const whole = await value("window.hitreg.charts.span.to - window.hitreg.charts.span.from");
  await press("u");
  assert.ok((await value("window.hitreg.charts.span.to - window.hitreg.charts.span.from")) < whole, "time is zoomed by a key");
  const lengths = await page.evaluate(() => {
    const { charts, state } = window.hitreg;
    return [2, 0.5].map((times) => {
      for (let step = 0; step < 100; step += 1) charts.zoomAround(times, state.at);
      return charts.span.to - charts.span.from;
    });
  });
  assert.ok(lengths[0] > 0 && Math.abs(lengths[1] - whole) < 1, `time zooms in and out again: ${lengths}`);
  await press("i", "j", "j");
  assert.ok(await value("document.querySelector('tr.row[aria-selected=true]') !== null"), "a row is chosen by keys");
  await bodiesAreInPlace(page, value, "bodies.json");
  const corrections = await value("window.hitreg.contents.sides[0].corrections.length");
  await page.keyboard.down("Alt");
  await press("2");
  await page.keyboard.up("Alt");
  assert.ok(corrections > 0 && (await value("document.getElementById('count').textContent")).endsWith(`of ${corrections} rows`), "the second tab has all corrections");
  assert.deepEqual(wrong, []);
  await page.close();
}

async function twoSides() {
  const { page, wrong, value } = await open("two.html");
  // The table leaves out shots that hit on neither side.
  const times = await value("window.hitreg.contents.difference.hits.changed.filter(({ change }) => change !== 'other_reason').map((shot) => shot.at_us)");
  assert.ok(times.length > 3);
  await page.evaluate(() => document.querySelectorAll("tr.row")[2].click());
  await settle(page);
  assert.equal(await at(value), times[2], "a click on a changed shot goes to its time");
  const weapons = await value("[...document.querySelectorAll('.sides h2')].map((heading) => / \\((\\w+)\\)$/.exec(heading.textContent)?.[1] ?? null)");
  const fired = await value("window.hitreg.contents.sides.map((side) => side.shotNamed.get(window.hitreg.state.selected.item.name)?.weapon ?? null)");
  assert.deepEqual(weapons, fired, "each side names its weapon");
  const why = await value("document.getElementById('why').textContent");
  assert.match(why, /A: .*B: /s);
  assert.match(why, /view error/);
  assert.match(why, /The same shot under other settings.*with(out)? lag compensation: \w/s);
  await page.keyboard.press("g");
  await settle(page);
  assert.equal(await at(value), await value("window.hitreg.contents.difference.first.place.at_us"));
  const { table, field, place } = await value("window.hitreg.contents.difference.first");
  const words = await value("document.getElementById('divergence').title");
  const expectedWords = [table, field, place.player === undefined ? "" : `p${place.player}`, place.entity === undefined ? "" : `entity ${place.entity}`];
  assert.ok(expectedWords.every((word) => words.includes(word)), words);
  assert.deepEqual(wrong, []);
  for (const [theme, width, height] of [["light", 1280, 800], ["dark", 1280, 800], ["light", 3840, 2160], ["dark", 3840, 2160], ["light", 390, 844]]) {
    await page.setViewport({ width, height });
    await page.evaluate((theme) => window.hitreg.setTheme(theme), theme);
    await page.evaluate(() => document.querySelectorAll("tr.row")[3].click());
    await settle(page);
    const wide = await value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert.equal(wide, 0, `nothing sticks out at ${width}`);
    const wideTabs = await page.evaluate(() => {
      const [tabs, shown] = [[...document.querySelectorAll("#tabs button")], document.querySelector("#tabs [aria-selected=true]")];
      const wide = tabs.filter((tab) => { tab.click(); return document.documentElement.scrollWidth > document.documentElement.clientWidth; });
      shown?.click();
      return wide.map((tab) => tab.textContent);
    });
    assert.deepEqual(wideTabs, [], `no tab sticks out at ${width}`);
    const covered = await page.evaluate(() => {
      const parts = ["field-box", "transport", "charts-box", "tabs", "filters", "table-box", "why"].map((id) => document.getElementById(id).getBoundingClientRect());
      return parts.filter((a, at) => parts.slice(at + 1).some((b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)).length;
    });
    assert.equal(covered, 0, `no part covers another at ${width}`);
    await page.screenshot({ path: path.join(screenshots, `report-${theme}-${width}.png`) });
  }
  await page.close();
  for (const width of [1280, 3840]) {
    const { page, value } = await open("two.html", width, Math.round(width * 0.56));
    assert.equal(await value("window.shifts"), 0, `the layout stands still at ${width}`);
    await page.close();
  }
}

/** Texts of the tabs, and what is cut off or outside the window with each of them open and a row of it selected. */
async function tabsThatFit(page, name) {
  const tabs = await page.evaluate(() => [...document.querySelectorAll("[role=tab]")].map((tab) => tab.textContent));
  for (const [index, tab] of tabs.entries()) {
    await page.evaluate((index) => document.querySelectorAll("[role=tab]")[index].click(), index);
    await page.evaluate(() => document.querySelectorAll("tr.row")[1]?.click());
    await settle(page);
    const wrong = await page.evaluate(() => {
      const shown = [...document.querySelectorAll("body *:not(option, script, svg *)")].filter((element) => element.getBoundingClientRect().width > 0);
      const words = (element) => `${element.localName}#${element.id} ${element.textContent.slice(0, 40)}`;
      const cut = shown.filter((element) => getComputedStyle(element).display !== "inline" && element.scrollWidth > element.clientWidth + 1);
      const outside = shown.filter((element) => element.getBoundingClientRect().left < -1 || element.getBoundingClientRect().right > innerWidth + 1);
      return [...cut.map((element) => `cut off: ${words(element)}`), ...outside.map((element) => `outside: ${words(element)}`)];
    });
    assert.deepEqual(wrong, [], `${name}, tab ${tab}`);
    await page.screenshot({ path: path.join(screenshots, `${name.replace(".html", "")}-tab-${index}.png`) });
  }
  return tabs;
}

/** Nothing is cut off in any tab at 1280 x 800. */
async function tabs() {
  for (const name of ["one.html", "two.html", "crowd.html", "crowds.html", "unknown.html", "bare.html", "reported.html"]) {
    const { page, wrong, value } = await open(name);
    await tabsThatFit(page, name);
    const about = await value("(({ height }) => height)(document.getElementById('table-box').getBoundingClientRect())");
    assert.ok(about > 600, `About takes the height of the window: ${about}`);
    assert.deepEqual(wrong, []);
    await page.close();
  }
  {
    // Nothing draws the map again for a printer, whose page has another shape.
    const { page, value } = await open("one.html");
    await page.emulateMediaType("print");
    assert.equal(await value("getComputedStyle(document.getElementById('field')).objectFit"), "contain");
    await page.close();
  }
  // In a narrow window the layers cover the top, and the whole field is below them.
  const { page, value } = await open("one.html", 800, 900);
  assert.ok((await value("window.hitreg.charts && window.hitreg.field.camera.scale")) > 0.05, "the field is seen at 800");
  await page.close();
}

/** Counts are those of `replay`; of two sides apart; a dash where the trace does not say. */
async function counts() {
  const labels = (value) => value("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.textContent)");
  const lanesOf = (page) => page.evaluate(async () => {
    const [{ laneText }, { seriesOf }] = await Promise.all([import("page/charts.js"), import("page/series.js")]);
    const { contents, state } = window.hitreg;
    return seriesOf(contents).find((chart) => chart.label === "corrections by cause").lanes.map((lane) => laneText(lane, lane.counts, state, contents.sides));
  });
  const expected = JSON.parse(fs.readFileSync(path.join(folder, "counts.json"), "utf8"));
  {
    const { page, value } = await open("one.html");
    const [{ shots, hits, corrections }] = expected;
    const head = await value("document.getElementById('subtitle').textContent");
    assert.ok(head.endsWith(`${shots} shots, ${hits} hits · ${corrections} corrections`), head);
    assert.deepEqual((await labels(value)).slice(0, 2), [`Shots ${shots}`, `Corrections ${corrections}`]);
    await page.close();
  }
  {
    const { page, value } = await open("two.html");
    const [a, b] = expected;
    assert.deepEqual((await labels(value)).slice(1, 3), [`Shots A ${a.shots} · B ${b.shots}`, `Corrections A ${a.corrections} · B ${b.corrections}`]);
    const sums = [0, 0];
    for (const text of await lanesOf(page)) [/A (\d+)/, /B (\d+)/].forEach((side, index) => (sums[index] += Number(side.exec(text)[1])));
    assert.deepEqual(sums, [a.corrections, b.corrections], "the causes of each side add up to its corrections");
    const rows = () => value("Number(document.getElementById('count').textContent.split(' ')[0])");
    await page.evaluate(() => document.querySelectorAll("[role=tab]")[2].click());
    assert.equal(await rows(), a.corrections + b.corrections);
    const buttons = () => value("[...document.querySelectorAll('#table-box div button')].map((button) => button.textContent)");
    const counted = async (side) => (await buttons()).reduce((sum, text) => sum + Number(new RegExp(`${side} (\\d+)`).exec(text)?.[1] ?? 0), 0);
    assert.deepEqual([await counted("A"), await counted("B")], [a.corrections, b.corrections], "the buttons count each side");
    await page.keyboard.press("9");
    await settle(page);
    assert.equal(await rows(), a.corrections, "without side B, its rows are not listed");
    assert.deepEqual([await counted("A"), await counted("B")], [a.corrections, 0], "the buttons count only visible sides");
    await page.evaluate(() => document.querySelector("#table-box div button").click());
    assert.equal(await rows(), Number(/A (\d+)/.exec((await buttons())[0])[1]), "a button lists as many rows as it says");
    // With side A hidden, the keys go through the shots of side B.
    await page.keyboard.press("9");
    await page.keyboard.press("8");
    await page.keyboard.press("Home");
    await page.keyboard.press("n");
    await settle(page);
    assert.equal(await value("window.hitreg.state.selected.item.side"), 1);
    await page.close();
  }
  {
    // Side A has only bodies, so the screens and the shots are those of side B.
    const { page, value } = await open("only_b.html#eyes=2");
    const screens = await value("[...document.getElementById('follow').options].map((option) => option.value)");
    assert.deepEqual(screens, ["", "0", "1", "2", "3"]);
    assert.equal(await value("window.hitreg.state.follow"), 2);
    await page.keyboard.press("n");
    await settle(page);
    assert.equal(await value("window.hitreg.state.selected.item.side"), 1);
    await page.keyboard.press(">");
    await settle(page);
    assert.ok((await value("Array.from(window.hitreg.contents.sides[1].clockOf(2).at_us)")).includes(await at(value)), "a frame of p2");
    await page.close();
  }
  for (const name of ["unknown.html", "bare.html"]) {
    const { page, value } = await open(name);
    assert.match(await value("document.getElementById('subtitle').textContent"), /shots and hits not known · corrections not known$/, name);
    assert.deepEqual((await labels(value)).slice(0, 2), ["Shots —", "Corrections —"], name);
    for (const [tab, words] of [[0, /^Shots and hits are not known: `shots` has no rows/], [1, /^Corrections are not known: there is no table `corrections`/]]) {
      await page.evaluate((tab) => document.querySelectorAll("[role=tab]")[tab].click(), tab);
      assert.match(await value("document.getElementById('table-box').textContent"), words, name);
    }
    const words = await page.evaluate(async () => {
      const { digits, quantity, seconds } = await import("page/dom.js");
      // Neighbours in single precision differ, a double has all digits, and ties round to the even digit.
      const exact = [-21.978502, -21.978497].map(Math.fround).concat([45.232956794132626, 0.5, 16777217]).map(digits);
      return [[0, 1, 1000].map((number) => quantity(number, "hit")), exact, [8312500, 8437500, 1000500, 15625].map(seconds)];
    });
    assert.deepEqual(words, [["0 hits", "1 hit", "1,000 hits"], ["-21.978502", "-21.978497", "45.232956794132626", "0.5", "16777217"], ["8.312 s", "8.438 s", "1.000 s", "0.016 s"]]);
    await page.close();
  }
  // For hits that the recorded server reported, misses, rewinds and most targets are unknown.
  const { page, value } = await open("reported.html");
  assert.match(await value("document.getElementById('subtitle').textContent"), /\d+ hits, misses not known/);
  assert.match((await labels(value))[0], /^Hits \d+$/);
  const names = await page.evaluate(async () => {
    const { nameOf } = await import("page/layers.js");
    return [0, 93].map((entity) => nameOf(entity, window.hitreg.contents.sides));
  });
  assert.deepEqual(names, ["p0", null], "only players are named on the field");
  await page.evaluate(() => document.querySelectorAll("tr.row")[0].click());
  const why = await value("document.getElementById('why').textContent");
  assert.match(why, /rewoundnot known.*on the serverhit \w+, 25 damage, as the recorded server reported it/s);
  assert.doesNotMatch(why, /under other settings/);
  await page.evaluate(() => document.querySelectorAll("[role=tab]")[2].click());
  const players = await value("[...document.querySelectorAll('tr.row')].map((row) => [...row.children].slice(5, 8).map((cell) => cell.textContent))");
  assert.ok(players.length > 1 && players.every(([shots, , wounds]) => shots === "—" && /^(—|\d+\+)$/.test(wounds)), JSON.stringify(players));
  // Nothing is known of the hits of a player without a recording, such as a bot.
  assert.deepEqual(players.map(([, hits]) => hits === "—"), [false, false, false, true]);
  for (const order of ["descending", "ascending"]) {
    await page.evaluate(() => [...document.querySelectorAll("th > button")].find((head) => head.textContent === "hits").click());
    const hits = await value("[...document.querySelectorAll('tr.row')].map((row) => row.children[6].textContent)");
    assert.deepEqual([await value("document.querySelector('th[aria-sort]').ariaSort"), hits.indexOf("—")], [order, 3], "unknown values are last");
  }
  const texts = await page.evaluate(async () => {
    const [texts, drawn] = [[], CanvasRenderingContext2D.prototype.fillText];
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
      texts.push(text);
      drawn.call(this, text, ...place);
    };
    window.hitreg.setEyes(3);
    await new Promise((done) => setTimeout(done, 200));
    return texts;
  });
  assert.ok(texts.includes("usercmds run per frame") && texts.includes("not known"), `${texts}`);
  const lane = await page.evaluate(async () => {
    const { laneText } = await import("page/charts.js");
    return [true, false].map((isKnown) => laneText({ label: "knockback", isKnown: () => isKnown }, [], window.hitreg.state, window.hitreg.contents.sides));
  });
  assert.deepEqual(lane, ["knockback 0", "knockback —"]);
  await page.close();
}

/** The Players column with this heading, as numbers. */
async function playersColumn(page, heading) {
  await page.evaluate(() => [...document.querySelectorAll("[role=tab]")].find((tab) => tab.textContent.startsWith("Players")).click());
  return page.evaluate((heading) => {
    const place = [...document.querySelectorAll("th")].findIndex((cell) => cell.textContent === heading);
    return [...document.querySelectorAll("tr.row")].map((row) => Number(row.children[place].textContent));
  }, heading);
}

/** The first view shows all walls, and a client without prediction has no corrections. */
async function walls() {
  const { page, value } = await open("dumb.html");
  const hidden = await page.evaluate(() => {
    const { contents, field: { camera } } = window.hitreg;
    const { clientWidth, clientHeight } = document.getElementById("field");
    const [x1, y1, x2, y2] = contents.walls.ends;
    const isHidden = (x, y) => Math.abs(x - camera.x) * camera.scale > clientWidth / 2 || Math.abs(y - camera.y) * camera.scale > clientHeight / 2;
    return [x1.length, [...x1].filter((_, row) => isHidden(x1[row], y1[row]) || isHidden(x2[row], y2[row])).length];
  });
  assert.ok(hidden[0] > 50 && hidden[1] === 0, `${hidden[1]} of ${hidden[0]} walls are not in the view`);
  assert.deepEqual(await playersColumn(page, "corr."), [0, 0]);
  assert.ok((await value("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.textContent)")).includes("Corrections 0"));
  await page.close();
}

/** The head of a part, and the sums of its players, are the counts of `replay`. */
async function part() {
  const { shots, exercised, network } = JSON.parse(fs.readFileSync(path.join(folder, "part.json"), "utf8"));
  const { page, value } = await open("part.html");
  const head = await value("document.getElementById('subtitle').textContent");
  assert.ok(head.endsWith(`${shots.fired} shots, ${shots.hit} hits · ${exercised.corrections} corrections`), head);
  for (const [heading, count] of [["shots", shots.fired], ["hits", shots.hit], ["lost ↓", network.down.lost], ["lost ↑", network.up.lost]]) {
    const sum = (await playersColumn(page, heading)).reduce((sum, number) => sum + number, 0);
    assert.equal(sum, count, heading);
  }
  const words = await page.evaluate(() => {
    window.hitreg.choose({ kind: "correction", item: window.hitreg.contents.sides[0].corrections[0] });
    return document.getElementById("why").textContent;
  });
  assert.match(words, /^correction 1 of [\d,]+ in this part, of p\d/);
  await page.close();
}

/** A shot may hit further targets, which count and which the filter finds. */
async function targets() {
  const { page, value } = await open("crowd.html");
  const { wounds, others } = await page.evaluate(() => {
    const [side] = window.hitreg.contents.sides;
    const hits = side.shots.filter(({ server }) => server.reason === "hit").map(({ server }) => `${server.target} ${server.also_hit ?? ""}`);
    const wounds = side.players.map((player) => hits.filter((targets) => new RegExp(`p${player}\\b`).test(targets)).length);
    return { wounds, others: side.shots.flatMap(({ server }) => server.also_hit ?? []) };
  });
  assert.ok(others.length > 0, "no shot hit several");
  assert.deepEqual(await playersColumn(page, "was hit"), wounds);
  await page.evaluate(() => document.querySelectorAll("[role=tab]")[0].click());
  await page.type("#filter", others[0]);
  await settle(page);
  assert.equal(await value("document.querySelectorAll('tr.row').length"), 1, others[0]);
  await page.close();
}

/** Round trips are those of `info`, with late acks. */
async function roundTrips() {
  const { by_player: players } = JSON.parse(fs.readFileSync(path.join(folder, "info.json"), "utf8"));
  const { page } = await open("late.html");
  for (const [heading, key] of [["rtt p50", "p50"], ["p95", "p95"]]) {
    const shown = await playersColumn(page, heading);
    assert.equal(shown.length, 16);
    assert.deepEqual(shown, players.map(({ rtt_ms: expected }) => Number(expected[key].toFixed(1))), heading);
  }
  await page.close();
}

/** Without clocks, the time goes from the first row to the last one. */
async function span() {
  const { page, wrong, value } = await open("rows.html");
  const [from, to] = await value("(({ shots, corrections }) => { const at = [...shots, ...corrections].map((row) => row.at_us); return [Math.min(...at), Math.max(...at)]; })(window.hitreg.contents.sides[0])");
  // Acks without a correction may come before and after these, in a session of 12 s.
  const [begin, end] = await value("[window.hitreg.state.from, window.hitreg.state.to]");
  assert.ok(begin <= from && from < to && to <= end && end - begin > 10e6 && end <= 12e6, `${begin} to ${end}`);
  assert.ok((await value("document.getElementById('subtitle').textContent")).startsWith(`${((end - begin) / 1e6).toFixed(1)} s`));
  assert.deepEqual(wrong, []);
  await page.close();
}

/** A filter by a player does not list players whose numbers only begin with the same digits. */
async function filter() {
  const { page, value } = await open("crowd.html");
  await page.evaluate(() => document.querySelectorAll("[role=tab]")[1].click());
  const [own, longer] = await value("[(row) => row.player === 1, (row) => row.player >= 10].map((of) => window.hitreg.contents.sides[0].corrections.filter(of).length)");
  assert.ok(own > 0 && longer > 0);
  await page.keyboard.press("/");
  await page.keyboard.type("p1");
  await settle(page);
  assert.match(await value("document.getElementById('count').textContent"), new RegExp(`^${own} of `));
  // A weapon finds its impacts, too.
  await page.evaluate(() => document.querySelectorAll("[role=tab]")[0].click());
  const launcher = await value("window.hitreg.contents.sides[0].shots.filter((shot) => shot.weapon === 'launcher').length");
  assert.ok(launcher > (await value("window.hitreg.contents.sides[0].shots.filter((shot) => shot.weapon === 'launcher' && !shot.is_impact).length")));
  await page.keyboard.type("launcher");
  await settle(page);
  assert.match(await value("document.getElementById('count').textContent"), new RegExp(`^${launcher} of `));
  await page.close();
}

/** A player that is put elsewhere is no error of prediction, and does not set the scale of the chart. */
async function jumps() {
  const { page, value } = await open("crowd.html");
  const [all, jumped] = await page.evaluate(async () => {
    const { seriesOf } = await import("page/series.js");
    const chart = seriesOf(window.hitreg.contents).find((chart) => chart.label === "prediction error");
    const split = (isJump) => Math.max(...chart.lines.map(({ values, is_jump: jumps }) => values.reduce((most, value, row) => (jumps.has(row) === isJump ? Math.max(most, value) : most), 0)));
    return [split(false), split(true)];
  });
  assert.ok(jumped > 200 && all < 100, `${all} without jumps, ${jumped} in them`);
  await page.close();
}

async function links() {
  const [name] = await (async () => {
    const { page, value } = await open("one.html");
    const found = await value("window.hitreg.contents.sides[0].shots.slice(3, 4).map((shot) => shot.name)");
    await page.close();
    return found;
  })();
  const { page, wrong, value } = await open(`one.html#shot=${encodeURIComponent(name)}&theme=dark`);
  assert.equal(await value("window.hitreg.state.selected.item.name"), name);
  assert.equal(await value("document.documentElement.dataset.theme"), "dark");
  // A link of a page that is open does not load it again.
  await page.evaluate(() => (location.hash = "#t=2.5&eyes=1&theme=light"));
  await settle(page);
  assert.equal(await at(value), 2_500_000);
  assert.equal(await value("window.hitreg.state.follow"), 1);
  assert.equal(await value("document.documentElement.dataset.theme"), "light");
  assert.deepEqual(wrong, []);
  await page.close();
  // With two sides, the first table lists only changed shots.
  const two = await open("two.html");
  const same = await two.value("(({ sides, difference }) => { const changed = new Set(difference.hits.changed.map((change) => `p${change.shooter}#${change.command}`)); return sides[0].shots.map((shot) => shot.name).find((name) => !changed.has(name)); })(window.hitreg.contents)");
  await two.page.close();
  const linked = await open(`two.html#shot=${encodeURIComponent(same)}`);
  assert.equal(await linked.value("window.hitreg.state.selected?.item.name"), same);
  assert.equal(await at(linked.value), await linked.value("window.hitreg.state.selected.item.at_us"));
  await linked.page.close();
  // Links take the names that `why` takes. An impact has the last numbers.
  const named = await open(`one.html#shot=${encodeURIComponent("p9#1")}`);
  const explained = () => named.value("document.getElementById('why').textContent");
  assert.match(await explained(), /no shot p9#1/);
  const follow = async (hash) => {
    await named.page.evaluate((hash) => (location.hash = hash), hash);
    await settle(named.page);
    return [await at(named.value), await named.value("window.hitreg.state.follow")];
  };
  for (const [time, us] of [["2.5", 2_500_000], ["2.5s", 2_500_000], ["2.5 s", 2_500_000], ["0:02.5", 2_500_000], ["0:0:3", 3_000_000], ["1500ms", 1_500_000], ["1500000us", 1_500_000]]) {
    assert.deepEqual(await follow(`#t=${time}&eyes=1`), [us, 1], time);
    assert.match(await explained(), /^Select a shot/, "the sentence on another link is gone");
  }
  assert.deepEqual(await follow("#eyes=p2"), [1_500_000, 2]);
  for (const [hash, words] of [["#t=abc", /“abc” is not a time/], ["#t=", /“” is not a time/], ["#eyes=99", /no player “99”/], ["#eyes=", /no player “”/], ["#theme=blue", /no theme “blue”/]]) {
    assert.deepEqual(await follow(hash), [1_500_000, 2], "what a link cannot name stays");
    assert.match(await explained(), words);
  }
  await follow(`#shot=${encodeURIComponent(name)}&t=soon`);
  assert.match(await explained(), new RegExp(`“soon” is not a time.*shot ${name} `), "a link of which a part is read");
  assert.deepEqual(await follow("#eyes=2&t=1.5"), [1_500_000, 2]);
  assert.deepEqual(await follow("#eyes=none"), [1_500_000, null]);
  const impact = await named.value("window.hitreg.contents.sides[0].shots.find((shot) => shot.is_impact)");
  for (const text of [impact.name, `p${impact.shooter}#${impact.command}.${impact.index}`, `${impact.shooter}#${impact.command}`]) {
    await named.page.evaluate((text) => (location.hash = `#shot=${encodeURIComponent(text)}`), text);
    await settle(named.page);
    const selected = await named.value("window.hitreg.state.selected.item");
    assert.deepEqual([selected.shooter, selected.command, selected.is_impact], [impact.shooter, impact.command, text.startsWith("p")], text);
  }
  await named.page.evaluate(() => (location.hash = "#eyes=7"));
  await settle(named.page);
  assert.match(await explained(), /^This page has no player “7”: write 0, p0 or none\./, "the page names a player that it has");
  // Half of all ticks end in 5 at the fourth decimal.
  for (const shot of (await named.value("window.hitreg.contents.sides[0].shotsInTime.map(({ name, at_us }) => ({ name, at_us }))")).filter(({ at_us: at }) => at % 1000 === 500).slice(0, 9)) {
    await named.page.evaluate((name) => (location.hash = `#shot=${encodeURIComponent(name)}`), shot.name);
    await settle(named.page);
    const clock = (await named.value("document.getElementById('clock').textContent")).split(" ")[0];
    assert.ok((await explained()).includes(`at ${clock} s`), `${clock}: ${shot.name}`);
  }
  await named.page.close();
}

/** What has the keyboard's focus has a name, and heads of columns are reached by it. */
async function labels() {
  const { page, wrong, value } = await open("one.html");
  const nameless = await page.evaluate(() => [...document.querySelectorAll(":is(button, select, input, [tabindex]):not([hidden])")].filter((element) => !element.getAttribute("aria-label") && !element.getAttribute("aria-labelledby") && !element.labels?.length && !element.textContent).map((element) => element.outerHTML.slice(0, 80)));
  assert.deepEqual(nameless, []);
  await page.keyboard.press("End");
  await settle(page);
  assert.equal(await value("document.getElementById('slider').getAttribute('aria-valuetext')"), await value("document.getElementById('clock').textContent"));
  const [panel, selected] = await value("[document.getElementById('table-box'), document.querySelector('[role=tab][aria-selected=true]')].map((element) => element.id)");
  assert.deepEqual(await value("['aria-labelledby', 'role'].map((name) => document.getElementById('table-box').getAttribute(name))"), [selected, "tabpanel"]);
  assert.ok(await page.evaluate((panel) => [...document.querySelectorAll("[role=tab]")].every((tab) => tab.getAttribute("aria-controls") === panel), panel));
  await page.focus("#filter");
  const steps = ["Tab", "Tab", "Tab"];
  for (const key of steps) await page.keyboard.press(key);
  const sorted = () => value("[...document.querySelectorAll('th')].findIndex((head) => head.hasAttribute('aria-sort'))");
  await page.keyboard.press("Enter");
  assert.equal(await sorted(), 1, "the second column is sorted by the keyboard");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  assert.equal(await sorted(), 2, "the focus stays in the head");
  assert.equal(await value("window.hitreg.state.playing"), false);
  assert.deepEqual(wrong, []);
  await page.close();
}

/** Texts have at least the contrast of WCAG 2 for small texts, 4.5 to 1. */
async function contrast() {
  const { page } = await open("two.html");
  await page.evaluate(() => [...document.querySelectorAll("tr.row")].find((row) => row.querySelector(".hit")).click());
  for (const theme of ["light", "dark"]) {
    const weak = await page.evaluate((theme) => {
      window.hitreg.setTheme(theme);
      const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
      const light = ([red, green, blue]) => {
        const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = (element) => {
        const colour = numbers(getComputedStyle(element).backgroundColor);
        return colour[3] === 0 ? paper(element.parentElement) : colour;
      };
      const texts = [...document.querySelectorAll("#legend span, tr[aria-selected=true] span, #subtitle, #count, #at, #why dt, #why svg text, #divergence")];
      return texts.flatMap((text) => {
        const style = getComputedStyle(text);
        const [ink, behind] = [light(numbers(text.matches("svg text") ? style.fill : style.color)), light(paper(text.closest("svg") ?? text))].sort((a, b) => b - a);
        const contrast = (ink + 0.05) / (behind + 0.05);
        return contrast < 4.5 ? [`${text.textContent}: ${contrast.toFixed(2)}`] : [];
      });
    }, theme);
    assert.deepEqual(weak, [], theme);
  }
  await page.close();
}

async function sweep() {
  const { page, wrong, value } = await open("sweep.html");
  assert.ok((await value("document.querySelectorAll('figure svg').length")) > 2);
  assert.equal(await value("document.querySelectorAll('tbody tr').length"), 4);
  const [names, ...rows] = fs.readFileSync(path.join(folder, "sweep.csv"), "utf8").trim().split("\n").map((line) => line.split(","));
  const place = names.indexOf("usercmds");
  const counted = rows.map((cells) => cells[place]);
  const shown = await page.evaluate((place) => [...document.querySelectorAll("tbody tr")].map((row) => row.children[place].textContent), place);
  assert.ok(counted.every((text) => text.length > 4 && !text.endsWith("0")), `counts have more than four digits: ${counted}`);
  assert.deepEqual(shown, counted, "counts are not rounded");
  assert.deepEqual(wrong, []);
  const lines = await value("[...document.querySelectorAll('#legend span')].map((line) => [line.textContent, line.querySelector('path').getAttribute('stroke')])");
  assert.deepEqual(lines.map(([text]) => text), ["true", "false"]);
  const drawn = await value("[...document.querySelectorAll('figure')].map((figure) => [...new Set([...figure.querySelectorAll('circle')].map((point) => point.getAttribute('fill')))])");
  // A figure may be unknown for some of the values.
  const known = lines.map(([, colour]) => colour);
  assert.ok(drawn.every((colours) => colours.every((colour) => known.includes(colour))), "each line has a colour of the legend");
  assert.deepEqual(drawn[0], known);
  const cut = () => value("[...document.querySelectorAll('figure text')].filter((text) => text.getBBox().x + text.getBBox().width > 400).map((text) => text.textContent)");
  assert.deepEqual(await cut(), []);
  const points = await value("[...document.querySelectorAll('circle title')].map((point) => point.textContent)");
  assert.ok(points.every((text) => /^interpolation.lerp_ms (50|100), lag_compensation.enabled (true|false): [\d.]+( %)?$/.test(text)), points[0]);
  assert.ok(points.some((text) => text.endsWith(" %")), "shares are in percent");
  await page.screenshot({ path: path.join(screenshots, "sweep.png") });
  await page.setViewport({ width: 400, height: 800 });
  await settle(page);
  const [texts, plots] = await page.evaluate(() => [
    Math.max(...["title", "subtitle", "theme"].map((id) => document.getElementById(id).getBoundingClientRect().bottom)),
    document.getElementById("plots").getBoundingClientRect().top,
  ]);
  assert.ok(texts <= plots, `the head ends at ${texts}, and the plots begin at ${plots}`);
  await page.screenshot({ path: path.join(screenshots, "sweep-400.png") });
  await page.goto(`file://${folder}/modes.html`);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
  assert.ok((await value("document.querySelectorAll('figure svg').length")) > 2);
  assert.equal(await value("document.querySelectorAll('figure path[fill=none]').length"), 0, "no line joins names");
  assert.deepEqual(await cut(), []);
  await page.close();
}

/** Checks that every body is at its position in the trace, within the tolerance of the page. Returns whether the whole field shows all. */
async function bodiesAreInPlace(page, value, positions) {
  const expected = JSON.parse(fs.readFileSync(path.join(folder, positions), "utf8"));
  const found = await page.evaluate(async (expected) => {
    const { placeAt } = await import("page/lookup.js");
    const [side] = window.hitreg.contents.sides;
    const { x: left, y: bottom, whole } = window.hitreg.field.camera;
    const { clientWidth, clientHeight } = document.getElementById("field");
    const isShown = ({ x, y }) => Math.abs(x - left) * whole < clientWidth / 2 && Math.abs(y - bottom) * whole < clientHeight / 2;
    return expected.map(({ at_us, entity, x, y }) => {
      const place = placeAt(side.bodyOf.get(entity), at_us);
      return { off: place ? Math.hypot(place.x - x, place.y - y) : Infinity, shown: place !== null && isShown(place) };
    });
  }, expected);
  const [exactness] = await value("window.hitreg.contents.sides[0].exactness");
  const off = Math.max(...found.map((body) => body.off));
  assert.ok(expected.length > 100 && off <= exactness.tolerance + exactness.unit, `bodies are off by ${off} units`);
  return found.every((body) => body.shown);
}

/** A world far from 0 is drawn as one around 0. */
async function far() {
  const { page, wrong, value } = await open("far.html");
  assert.ok(await bodiesAreInPlace(page, value, "far.json"), "the field shows all bodies");
  assert.ok((await value("window.hitreg.contents.sides[0].exactness[0].tolerance")) < 1);
  assert.deepEqual(wrong, []);
  await page.close();
}

/** Bodies are in place at their times, whatever the time from tick to tick. */
async function uneven() {
  const { page, wrong, value } = await open("uneven.html");
  await bodiesAreInPlace(page, value, "uneven.json");
  assert.deepEqual(wrong, []);
  await page.close();
}

/** Each ack has its own error, and an unknown one is not drawn. */
async function predictionErrors() {
  const errorsOf = async (page) => page.evaluate(async () => {
    const { seriesOf } = await import("page/series.js");
    const chart = seriesOf(window.hitreg.contents).find((chart) => chart.label === "prediction error");
    if (!chart) return null;
    const most = (isJump) => Math.max(...chart.lines.map(({ values, is_jump: jumps }) => values.reduce((most, value, row) => (jumps.has(row) === isJump ? Math.max(most, value) : most), 0)));
    return [most(false), most(true), chart.lines.reduce((sum, { values }) => sum + values.length, 0)];
  });
  const expected = JSON.parse(fs.readFileSync(path.join(folder, "acks.json"), "utf8"));
  const { page, wrong } = await open("acks.html");
  const found = await errorsOf(page);
  assert.ok(expected[0] > 0 && expected[1] > 10 * expected[0], `${expected}`);
  assert.ok(found.every((number, at) => Math.abs(number - expected[at]) <= 0.01), `${found}, not ${expected}`);
  assert.deepEqual(wrong, []);
  await page.close();
  const without = await open("no-errors.html");
  assert.equal(await errorsOf(without.page), null);
  assert.ok((await without.value("window.hitreg.contents.sides[0].notes")).includes("prediction errors: `corrections` has no column error_units"));
  await without.page.close();
}

/** Only players are named, and each name is at the shape of its player. */
async function names() {
  const { page, wrong, value } = await open("open.html");
  const found = await page.evaluate(async () => {
    const [{ namedPlaces }, { placeAt }] = await Promise.all([import("page/layers.js"), import("page/lookup.js")]);
    const { contents, state } = window.hitreg;
    const [side] = contents.sides;
    const far = [];
    for (const eyes of [null, 0, 1]) {
      for (let at = state.from + 2e6; at < state.to; at += 1e5) {
        const shown = new Map((side.viewsOf.get(eyes ?? side.viewer) ?? []).map((track) => [track.entity, track]));
        for (const { entity, x, y } of namedPlaces({ contents, state: { ...state, at, follow: eyes }, walls: { moving: new Map() } })) {
          if (entity > 2) far.push(`p${entity} is no player`);
          const track = eyes === null || entity === eyes ? side.ownOf.get(entity) : shown.get(entity);
          const place = track && placeAt(track, at);
          if (!place || Math.hypot(place.x - x, place.y - y) > 0) far.push(`p${entity} at ${at} on the screen of ${eyes}`);
        }
      }
    }
    return [far, side.views.some(({ entity }) => entity > 2 && entity < 64), side.bodyOf.size];
  });
  assert.deepEqual(found, [[], true, 0]);
  assert.deepEqual(await value("window.hitreg.contents.sides[0].players"), [0, 1, 2]);
  assert.deepEqual(wrong, []);
  await page.close();
}

/** A gap is in the heading, and packets whose records lie in it are not lost, as in `info`. */
async function gaps() {
  const [info, replay] = ["gap-info.json", "gap-replay.json"].map((name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8")));
  const lost = [info.packets.lost, info.packets_up.lost];
  assert.ok(Math.min(...lost) > 10, `${lost}`);
  assert.deepEqual([replay.network.down.lost, replay.network.up.lost], lost);
  for (const name of ["gap.html", "gap-trace.html"]) {
    const { page, wrong, value } = await open(name);
    const sums = [];
    for (const heading of ["lost ↓", "lost ↑"]) sums.push((await playersColumn(page, heading)).reduce((sum, number) => sum + number, 0));
    assert.deepEqual(sums, lost, name);
    const { from_us: from, to_us: to } = info.gaps[0];
    const words = `records missing from ${(from / 1e6).toFixed(1)} to ${(to / 1e6).toFixed(1)} s`;
    assert.ok((await value("document.getElementById('subtitle').textContent")).includes(words), name);
    const middle = (from + to) / 2;
    assert.deepEqual(await shownAt(page, middle), { places: 0, values: [] }, "nothing is known in a gap");
    const { places, values } = await shownAt(page, from - 100_000);
    assert.ok(places > 3 && values.length > 4, `${places} ${values}`);
    const late = await page.evaluate(async () => {
      const { seriesOf } = await import("page/series.js");
      return seriesOf(window.hitreg.contents).find((chart) => chart.label === "lateness of ticks")?.lines[0].values.map(Math.abs).reduce((a, b) => Math.max(a, b)) ?? 0;
    });
    assert.ok(late < 20, `ticks are ${late} ms late`);
    await page.evaluate((at) => (location.hash = `#t=${at}us`), middle);
    await settle(page);
    assert.match(await value("document.getElementById('at').textContent"), /records missing$/);
    await page.screenshot({ path: path.join(screenshots, name.replace("html", "png")) });
    assert.deepEqual(wrong, []);
    await page.close();
  }
}

/** The number of drawn positions at a time, and the charts that have a value there. */
function shownAt(page, at) {
  return page.evaluate(async (at) => {
    const [{ placeAt }, { seriesOf }, { valueAt }] = await Promise.all([import("page/lookup.js"), import("page/series.js"), import("page/charts.js")]);
    const [side] = window.hitreg.contents.sides;
    const places = [...side.bodies, ...side.own, ...side.views].filter((track) => placeAt(track, at) !== null).length;
    const charts = seriesOf(window.hitreg.contents).filter((chart) => chart.lines?.some((line) => valueAt(line, at) !== undefined));
    return { places, values: charts.map((chart) => chart.label) };
  }, at);
}

/** The number beside a chart ends with the chart's data. */
async function numbers() {
  const { page } = await open("one.html");
  const found = await page.evaluate(async () => {
    const { valueAt } = await import("page/charts.js");
    const at = (gaps, times) => times.map((time) => valueAt({ at: [1e6, 1.1e6, 1.2e6], values: [5, 6, 7], gaps }, time) ?? null);
    return [at([], [0.9e6, 1.15e6, 1.4e6, 1.5e6]), at([{ from_us: 1.12e6, to_us: 1.19e6 }], [1.11e6, 1.15e6, 1.2e6])];
  });
  assert.deepEqual(found, [[null, 6, 7, null], [6, null, 7]]);
  await page.close();
}

/** A trace without times has no length. */
async function empty() {
  const { page, wrong, value } = await open("empty.html");
  assert.match(await value("document.getElementById('subtitle').textContent"), /^times not known · /);
  assert.equal(await value("document.getElementById('clock').textContent"), "times not known");
  assert.deepEqual(wrong, []);
  await page.close();
}

async function foreign() {
  for (const [name, said] of [["unknown.html", "These work without a build"], ["bare.html", "`shots` has no rows"]]) {
    const { page, wrong, value } = await open(name);
    assert.deepEqual(wrong, [], name);
    await page.evaluate(() => [...document.querySelectorAll("[role=tab]")].at(-1).click());
    assert.ok((await value("document.getElementById('table-box').textContent")).includes(said), `${name} says what it cannot know`);
    const named = await value("[...document.getElementById('follow').options].map((option) => option.text)");
    assert.equal(named.includes("p1 Ann"), name === "unknown.html", named.join());
    await page.keyboard.press("End");
    await settle(page);
    assert.ok((await value("window.hitreg.contents.sides[0].bodies.length")) > 0, name);
    await page.screenshot({ path: path.join(screenshots, name.replace("html", "png")) });
    await page.close();
  }
}

async function hostile() {
  const { page, wrong, value } = await open("hostile.html");
  for (let tab = 0; tab < 4; tab += 1) {
    await page.evaluate((tab) => document.querySelectorAll("[role=tab]")[tab].click(), tab);
    await page.evaluate(() => document.querySelector("tr.row")?.click());
    await settle(page);
    assert.equal(await value("document.querySelectorAll('img, iframe, object').length"), 0);
  }
  assert.equal(await value("window.broken"), undefined);
  assert.match(await value("document.body.textContent"), /onerror/, "it is shown as text");
  const text = await value("document.documentElement.textContent + document.title");
  assert.ok(text.includes("\\u{202e}") && !text.includes("\u202e"), "a change of the writing direction is written out");
  assert.deepEqual(wrong, []);
  await page.close();
}

/** The median of what it takes to draw a frame while it plays. */
async function speed() {
  const { page, wrong, value } = await open("crowd.html", 1920, 1080);
  assert.equal(await value("window.hitreg.contents.sides[0].players.length"), 16);
  await page.evaluate(() => { window.hitreg.setEyes(0); window.hitreg.drawn.length = 0; });
  await page.keyboard.press("Space");
  await new Promise((done) => setTimeout(done, 2500));
  const drawn = await value("window.hitreg.drawn.slice().sort((a, b) => a - b)");
  console.log(`a frame is drawn in ${drawn[drawn.length >> 1].toFixed(2)} ms (median of ${drawn.length})`);
  assert.ok(drawn.length > 10 && drawn[drawn.length >> 1] < 8);
  assert.deepEqual(wrong, []);
  await page.close();
}

try {
  for (const check of [keysAndSlider, twoSides, tabs, counts, walls, part, targets, roundTrips, span, filter, jumps, links, labels, contrast, sweep, far, uneven, predictionErrors, names, gaps, numbers, empty, foreign, hostile, speed]) {
    await check();
    console.log(`${check.name}: good`);
  }
} finally {
  await browser.close();
}
