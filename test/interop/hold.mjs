// hold.mjs LOG WHO - what a contender does while it has the lock.
//
// Appends "<ns> enter <who>" to the log, waits a few milliseconds, appends "<ns> leave <who>".
// The log is opened with O_APPEND, and each line is one write.  So the lines are in the order of
// the events.  The time is CLOCK_MONOTONIC, the same for all processes; it is a second check.
// check.mjs reads the log.
//
// `redlock run` starts this file as its command; contend.mjs imports it.

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { argv, exit, hrtime } from 'node:process';
import { fileURLToPath } from 'node:url';

function note(log, what, who) {
  appendFileSync(log, `${hrtime.bigint()} ${what} ${who}\n`);
}

export async function hold(log, who) {
  note(log, 'enter', who);
  await sleep(2 + Math.random() * 8);
  note(log, 'leave', who);
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  if (argv.length !== 4) {
    console.error('usage: hold.mjs LOG WHO');
    exit(64);
  }
  await hold(argv[2], argv[3]);
}
