// The page's data, decoded from the embedded bytes that `packed.rs` writes.

/** The data of the page, with each column as an array. */
export async function read(element) {
  const text = element.textContent.trim();
  element.textContent = "";
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const contents = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)), (_, value) => (typeof value === "string" ? printable(value) : value));
  return unpacked(contents, bytes.subarray(4 + length));
}

/** A text with its control characters and changes of the writing direction written out, as on the command line. */
function printable(text) {
  return text.replace(/[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g, (letter) => ({ "\t": "\\t", "\r": "\\r" })[letter] ?? `\\u{${letter.charCodeAt(0).toString(16)}}`);
}

/** Records that `records.rs` packs. */
function records({ records: count, shapes, kinds, texts, numbers_at: numbersAt, measures_at: measuresAt }, bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const last = new Float64Array(kinds.length);
  let [at, measureAt, shape] = [numbersAt, measuresAt, 0];
  const number = () => {
    let byte = bytes[at++];
    let value = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = bytes[at++];
      value += (byte & 127) * scale;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
  const field = (index) => {
    const kind = kinds[index];
    if (kind === "f") {
      measureAt += 4;
      return view.getFloat32(measureAt - 4, true);
    }
    if (kind === "d") {
      measureAt += 8;
      return view.getFloat64(measureAt - 8, true);
    }
    last[index] += number();
    return kind === "t" ? texts[last[index]] : kind === "b" ? last[index] === 1 : last[index];
  };
  /** The value of a shape: a number of a field, -1 for null, -2 for an empty list, or more of them. */
  const value = (of) => {
    if (typeof of === "number") return of >= 0 ? field(of) : of === -1 ? null : [];
    if (Array.isArray(of)) return of.map(value);
    const made = {};
    for (const key in of) made[key] = value(of[key]);
    return made;
  };
  return Array.from({ length: count }, () => value(shapes[(shape += number())]));
}

const isRecords = (value) => "records" in value && "shapes" in value && "texts" in value;
const isColumn = (value) => value !== null && typeof value === "object" && "at" in value && "rows" in value && "order" in value && "unit" in value;

/** The same value with its columns as arrays of numbers, and its records as objects. */
function unpacked(value, bytes) {
  if (isColumn(value)) return column(value, bytes);
  if (value === null || typeof value !== "object") return value;
  if (isRecords(value)) return records(value, bytes);
  for (const key of Object.keys(value)) value[key] = unpacked(value[key], bytes);
  return value;
}

/** Decodes prediction errors and sums them: seven bits per byte, lowest first, with the sign in the lowest bit. */
function column({ at, rows, order, unit, origin = 0 }, bytes) {
  const values = new Float64Array(rows);
  let [before, step] = [0, 0];
  for (let row = 0; row < rows; row += 1) {
    let byte = bytes[at++];
    let number = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = bytes[at++];
      number += (byte & 127) * scale;
    }
    const surprise = number % 2 === 0 ? number / 2 : -(number + 1) / 2;
    step = order === 2 ? step + surprise : surprise;
    before += step;
    values[row] = origin + before * unit;
  }
  return values;
}
