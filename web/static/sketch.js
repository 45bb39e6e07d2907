// A small picture of a schedule for its row of the table: every device a line of colours, no numbers.

const WIDTH = 160, HEIGHT = 40;

export function sketch(chart) {
  const canvas = document.createElement("canvas"), ratio = window.devicePixelRatio || 1;
  const lines = chart.boxes.length, high = Math.max(1, Math.min(8, HEIGHT / lines));
  canvas.className = "sketch";
  canvas.width = WIDTH * ratio;
  canvas.height = Math.ceil(high * lines) * ratio;
  canvas.setAttribute("aria-hidden", "true");
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const scale = WIDTH / (chart.end || 1);
  chart.boxes.forEach((row, device) => {
    let at = 0;
    for (let i = 0; i < row.length; i += 4) {
      at += row[i];
      const style = chart.styles[row[i + 3]];
      if (style.lane) continue; // the stream that computes says enough at this size
      const half = style.half ? 0.5 : 1, top = high * (device + (style.half === 2 ? 0.5 : 0));
      pen.fillStyle = style.colour;
      pen.fillRect(at * scale, top, Math.max(row[i + 1] * scale, 0.3), high * half * 0.88);
    }
  });
  return canvas;
}
