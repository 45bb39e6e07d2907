// Boxes narrower than some pixels: each pixel column of a lane gets the mean of what covers it, as print would show it.

function meansOf(state, area) {
  const width = Math.max(1, Math.ceil(area.width)), lanes = state.lanes.length, sums = new Map();
  function add(device, paint, left, wide, dim) {
    const key = device * lanes + paint.lane;
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = new Float32Array(4 * width)));
    const colour = dim ? paint.dim : paint.lit, share = paint.half ? 0.5 : 1;
    const first = Math.max(0, Math.floor(left)), last = Math.min(width - 1, Math.floor(left + wide));
    for (let column = first; column <= last; column++) {
      const covered = (Math.min(left + wide, column + 1) - Math.max(left, column)) * share;
      if (covered <= 0) continue;
      const at = 4 * column;
      sum[at] += colour[0] * covered;
      sum[at + 1] += colour[1] * covered;
      sum[at + 2] += colour[2] * covered;
      sum[at + 3] += covered;
    }
  }
  function draw(ctx) {
    if (!sums.size) return;
    const keys = [...sums.keys()], strip = stripFor(state, width, keys.length), pen = strip.getContext("2d");
    const image = pen.createImageData(width, keys.length);
    keys.forEach((key, line) => fillLine(image.data, 4 * width * line, sums.get(key)));
    pen.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    keys.forEach((key, line) => {
      const lane = state.lanes[key % lanes], top = area.top + (Math.floor(key / lanes) + lane.top) * area.row;
      ctx.drawImage(strip, 0, line, width, 1, area.left, top, width, lane.height * area.row);
    });
    ctx.imageSmoothingEnabled = true;
  }
  return { add, draw };
}

function fillLine(pixels, at, sum) {
  for (let i = 0; i < sum.length; i += 4) {
    const covered = sum[i + 3];
    if (!covered) continue;
    pixels[at + i] = sum[i] / covered;
    pixels[at + i + 1] = sum[i + 1] / covered;
    pixels[at + i + 2] = sum[i + 2] / covered;
    pixels[at + i + 3] = 255 * Math.min(1, covered);
  }
}

// A canvas of at least this size that is kept from one drawing to the next.
function stripFor(state, width, height) {
  const strip = (state.strip ??= document.createElement("canvas"));
  if (strip.width < width) strip.width = width;
  if (strip.height < height) strip.height = height;
  return strip;
}
