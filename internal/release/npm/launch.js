'use strict';
// Runs a program of the package for this platform as if it had been started itself: with
// the same arguments, streams, signals and end.

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const { isatty } = require('node:tty');

module.exports = function launch(name) {
  const platform = `@busdk/bus-agent-${process.platform}-${process.arch}`;
  let program;
  try {
    program = require.resolve(`${platform}/bin/${name}`);
  } catch {
    console.error(`bus-agent: package ${platform} is not installed; it exists for linux and darwin on x64 and arm64, and npm leaves it out with --omit=optional`);
    process.exit(1);
  }
  if (process.execve) { // since Node.js 22.15: no launcher is left that could end alone
    process.emitWarning = () => {}; // "execve is experimental"
    process.execve(program, [program, ...process.argv.slice(2)], process.env);
  }
  const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
  // The keys of a terminal signal the program too, and a second Ctrl-C can mean more.
  const keys = [0, 1, 2].some((fd) => isatty(fd)) ? ['SIGINT', 'SIGQUIT'] : [];
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => keys.includes(signal) || child.kill(signal));
  }
  child.on('error', (error) => {
    console.error(`bus-agent: ${program} cannot be started: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.exitCode = 128 + constants.signals[signal]; // where the signal is ignored
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
};
