// The page's data, decoded from the embedded bytes that `packed.rs` writes.

/** The data of the page, with each column as an array. */
export async function read(element) {
  const text = element.textContent.trim();
  element.textContent = "";
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const contents = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return unpacked(contents, bytes.subarray(4 + length));
}

const isColumn = (value) => value !== null && typeof value === "object" && "at" in value && "rows" in value && "order" in value && "unit" in value;

/** The same value with its columns as arrays of numbers. */
function unpacked(value, bytes) {
  if (isColumn(value)) return column(value, bytes);
  if (value === null || typeof value !== "object") return value;
  for (const key of Object.keys(value)) value[key] = unpacked(value[key], bytes);
  return value;
}

/** Decodes prediction errors and sums them: seven bits per byte, lowest first, with the sign in the lowest bit. */
function column({ at, rows, order, unit }, bytes) {
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
    values[row] = before * unit;
  }
  return values;
}
