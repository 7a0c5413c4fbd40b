/** Values as text, by the type of a register or of an element. */

const scratch = new DataView(new ArrayBuffer(8));
const digits = new Intl.NumberFormat("en-US");

/** @param {number} bits */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

/** @param {number} bits */
export function bfloat(bits) {
  scratch.setUint32(0, bits << 16);
  return scratch.getFloat32(0);
}

/**
 * @param {number} bits
 * @param {number} exponentBits
 * @param {number} bias
 * @param {boolean} finite whether there are no infinities
 */
function small(bits, exponentBits, bias, finite) {
  const mantissa = 7 - exponentBits;
  const sign = bits & 128 ? -1 : 1;
  const exponent = (bits >> mantissa) & ((1 << exponentBits) - 1);
  const fraction = bits & ((1 << mantissa) - 1);
  const top = (1 << exponentBits) - 1;
  if (finite ? exponent === top && fraction === (1 << mantissa) - 1 : exponent === top && fraction) return NaN;
  if (!finite && exponent === top) return sign * Infinity;
  const scale = 1 << mantissa;
  return sign * (exponent ? 2 ** (exponent - bias) * (1 + fraction / scale) : 2 ** (1 - bias) * (fraction / scale));
}

/** @param {number} value */
export function float(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "−inf";
  if (value === 0) return Object.is(value, -0) ? "−0" : "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3 ? value.toExponential(3) : String(+value.toPrecision(5));
  return text.replace("e+", "e").replace(/^-/, "−");
}

/** The same in at most seven characters or so. @param {number} value */
export function brief(value) {
  if (!Number.isFinite(value) || value === 0) return float(value);
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(size < 1 ? 3 : 4));
  return text.replace("e+", "e").replace(/^-/, "−");
}

/**
 * The number that some bytes are as a type; null if the type is not a number that JavaScript has.
 * @param {string} type
 * @param {DataView} view
 * @param {number} at
 * @returns {number | bigint | boolean | null}
 */
export function number(type, view, at) {
  switch (type) {
    case "pred": return view.getUint8(at) !== 0;
    case "f32": case "float32": case "tf32": return view.getFloat32(at, true);
    case "f64": case "float64": return view.getFloat64(at, true);
    case "f16": case "float16": return half(view.getUint16(at, true));
    case "bf16": case "bfloat16": return bfloat(view.getUint16(at, true));
    case "e4m3": case "float8_e4m3fn": return small(view.getUint8(at), 4, 7, true);
    case "e5m2": case "float8_e5m2": return small(view.getUint8(at), 5, 15, false);
    case "s8": case "int8": return view.getInt8(at);
    case "u8": case "b8": case "uint8": case "bool": return view.getUint8(at);
    case "s16": case "int16": return view.getInt16(at, true);
    case "u16": case "b16": case "uint16": return view.getUint16(at, true);
    case "s32": case "int32": return view.getInt32(at, true);
    case "u32": case "b32": case "uint32": return view.getUint32(at, true);
    case "s64": case "int64": return view.getBigInt64(at, true);
    case "u64": case "b64": case "uint64": return view.getBigUint64(at, true);
    default: return null;
  }
}

/** @type {Record<string, number>} bytes of a type */
const SIZES = {
  pred: 1, f32: 4, float32: 4, tf32: 4, f64: 8, float64: 8, f16: 2, float16: 2, bf16: 2, bfloat16: 2, e4m3: 1, e5m2: 1,
  float8_e4m3fn: 1, float8_e5m2: 1, s8: 1, int8: 1, u8: 1, b8: 1, uint8: 1, bool: 1, s16: 2, int16: 2, u16: 2, b16: 2, uint16: 2,
  s32: 4, int32: 4, u32: 4, b32: 4, uint32: 4, s64: 8, int64: 8, u64: 8, b64: 8, uint64: 8,
};

/** @param {string} type */
export function sizeOf(type) {
  return SIZES[type] ?? 1;
}

/**
 * Some bytes as text.
 * @param {string} type `f32`, `b32`, `f16x2`, `hex`, …
 * @param {DataView} view
 * @param {number} at
 * @param {number} size in bytes
 * @returns {string}
 */
export function text(type, view, at, size) {
  if (type === "f16x2" || type === "bf16x2") {
    const of = type === "f16x2" ? half : bfloat;
    return `${float(of(view.getUint16(at, true)))} ${float(of(view.getUint16(at + 2, true)))}`;
  }
  if (type === "e4m3x4" || type === "ue8m0x4") {
    const of = (/** @type {number} */ byte) => (type === "e4m3x4" ? small(byte, 4, 7, true) : byte === 255 ? NaN : 2 ** (byte - 127));
    return [0, 1, 2, 3].map((index) => brief(of(view.getUint8(at + index)))).join(" ");
  }
  if (type !== "hex") {
    const found = sizeOf(type) <= size ? number(type, view, at) : null;
    if (typeof found === "boolean") return found ? "true" : "false";
    if (typeof found === "number" && /^(f|bf|tf|e\dm)/.test(type)) return float(found);
    if (found !== null) {
      const plain = found.toString().replace("-", "−");
      return plain.length > 11 || (type.startsWith("b") && plain.length > 7) ? `0x${unsigned(view, at, size).toString(16)}` : plain;
    }
  }
  return `0x${unsigned(view, at, size).toString(16).padStart(Math.min(size, 4) * 2, "0")}`;
}

/**
 * @param {DataView} view
 * @param {number} at
 * @param {number} size
 */
export function unsigned(view, at, size) {
  let found = 0n;
  for (let index = size - 1; index >= 0; index--) found = (found << 8n) | BigInt(view.getUint8(at + index));
  return found;
}

/** @param {number} value */
export function grouped(value) {
  return digits.format(value);
}

/** @param {number[]} index */
export function tuple(index) {
  const kept = [...index];
  while (kept.length > 1 && kept[kept.length - 1] === 0) kept.pop();
  return kept.length > 1 ? `(${kept.join(", ")})` : `${kept[0]}`;
}

/** The lanes of a mask as text: `0–3, 8`. @param {number} mask */
export function lanesOf(mask) {
  if (mask >>> 0 === 0xffffffff) return "all lanes";
  const found = [];
  for (let lane = 0; lane < 32; lane++) {
    if (!(mask >>> lane & 1)) continue;
    let end = lane;
    while (end < 31 && mask >>> (end + 1) & 1) end++;
    found.push(end > lane ? `${lane}–${end}` : `${lane}`);
    lane = end;
  }
  return found.length ? `lane${mask & (mask - 1) ? "s" : ""} ${found.join(", ")}` : "no lane";
}
