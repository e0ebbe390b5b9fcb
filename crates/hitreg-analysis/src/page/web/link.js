// Reads the address of the page: `#shot=p1%2395`, `#t=1.55&eyes=1`, `#theme=dark`.

/** What a link asks for; `undefined` where it asks for nothing. `unread` has a sentence for each value without a meaning. */
export function readLink(hash, { players, shots }) {
  const asked = new URLSearchParams(hash.slice(1));
  const unread = [];
  const read = (key, meaning, words) => {
    if (!asked.has(key)) return undefined;
    const found = meaning(asked.get(key));
    if (found === undefined) unread.push(words(asked.get(key)));
    return found;
  };
  return {
    theme: read("theme", (text) => ["dark", "light"].find((theme) => theme === text), (text) => `This page has no theme “${text}”: write dark or light.`),
    eyes: read("eyes", (text) => (text === "none" ? null : players.find((player) => [`${player}`, `p${player}`].includes(text))), (text) => `This page has no player “${text}”: write ${[...players.slice(0, 1).flatMap((player) => [`${player}, p${player}`]), "none"].join(" or ")}.`),
    at: read("t", timeOf, (text) => `“${text}” is not a time: write 75.5, 75.5s, 1:15.5 or 75500ms.`),
    shot: read("shot", (text) => shotOf(text, shots), (text) => `This page has no shot ${text}.`),
    unread,
  };
}

/** The microseconds of a time in the forms that the command line takes; `undefined` for other texts. */
function timeOf(text) {
  const [, sign, of] = /^(-?)(.*)$/s.exec(text);
  const [, count, unit] = /^(\d+(?:\.\d+)?) ?(ms|us|µs|s)?$/.exec(of) ?? [];
  const [, hours = 0, minutes, seconds] = /^(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$/.exec(of) ?? [];
  const units = { s: 1e6, ms: 1e3, us: 1, µs: 1 };
  const us = count === undefined ? (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1e6 : Number(count) * units[unit ?? "s"];
  return Number.isNaN(us) ? undefined : sign ? -us : us;
}

/** The shot of a name in the forms that `why` takes, such as `p1#95` and `p1#95.1`; `p1#95 impact` is its impact. */
function shotOf(text, shots) {
  const [, shooter, command, index, impact] = /^p?(\d+)#(\d+)(?:\.(\d+))?( impact)?$/.exec(text) ?? [];
  const isIt = (shot) => shot.shooter === Number(shooter) && shot.command === Number(command) && (index === undefined || shot.index === Number(index)) && (!impact || shot.is_impact);
  return shots.filter(isIt).sort((a, b) => a.index - b.index)[0];
}
