if (runs.length) {
  startTimeline(); // its choices come before those of the address
  const list = startTable();
  startKeys();
  startRunView(list);
}
