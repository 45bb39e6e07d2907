// Draws the one schedule of a page; page.html#120-180 opens on that time.
unpacked("chart").then((data) => {
  const made = pipesched.chart(document.getElementById("chart"), data);
  const asked = /^#(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(location.hash);
  if (asked) made.show(Number(asked[1]), Number(asked[2]));
});
