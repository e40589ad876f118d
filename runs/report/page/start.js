if (runs.length) {
  startTable();
  startTimeline();
  startRunView();
}
