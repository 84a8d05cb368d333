// bench.mjs [--in-flight K] [--cycles N] - lock + unlock cycles of npm's redlock.
//
// Prints the line that `redlock bench` prints.  The masters are those of REDLOCK_MASTERS.

import Redlock from 'redlock';
import { exit } from 'node:process';
import { parseArgs } from 'node:util';
import { connect } from './clients.mjs';

const TTL_MS = 10000;

function count(text, option) {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`bench.mjs: ${option}: ${text}`);
  exit(64);
}

// The nearest-rank percentile of sorted samples, in ms, as microseconds.
function percentileUs(sorted, percent) {
  if (sorted.length === 0) return '0.0';
  return (sorted[Math.ceil((sorted.length * percent) / 100) - 1] * 1000).toFixed(1);
}

async function cycle(redlock, resource, figures) {
  const began = performance.now();
  try {
    const lock = await redlock.acquire([resource], TTL_MS);
    const acquired = performance.now();
    await lock.release();
    figures.acquire.push(acquired - began);
    figures.unlock.push(performance.now() - acquired);
  } catch {
    figures.errors++;
  }
}

async function slot(redlock, i, figures) {
  while (figures.left > 0) {
    figures.left--;
    await cycle(redlock, `bench/${i}`, figures);
  }
}

function print(figures, elapsedMs, cpuUs) {
  const acquire = Float64Array.from(figures.acquire).sort();
  const unlock = Float64Array.from(figures.unlock).sort();
  const cycles = Math.max(unlock.length, 1);
  console.log([
    `cycles_per_s=${(unlock.length / (elapsedMs / 1000)).toFixed(0)}`,
    `acquire_p50_us=${percentileUs(acquire, 50)}`,
    `acquire_p99_us=${percentileUs(acquire, 99)}`,
    `unlock_p50_us=${percentileUs(unlock, 50)}`,
    `unlock_p99_us=${percentileUs(unlock, 99)}`,
    `cpu_us_per_cycle=${((cpuUs.user + cpuUs.system) / cycles).toFixed(2)}`,
    `errors=${figures.errors}`,
  ].join(' '));
}

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '1' },
    cycles: { type: 'string', default: '5000' },
  },
});
const inFlight = count(values['in-flight'], '--in-flight');
const figures = { left: count(values.cycles, '--cycles'), errors: 0, acquire: [], unlock: [] };
const clients = await connect();
const redlock = new Redlock(clients, { retryCount: 0 });
await cycle(redlock, 'bench/warm-up', { acquire: [], unlock: [], errors: 0 }); // Loads the scripts.

const began = performance.now();
const cpuBegan = process.cpuUsage();
await Promise.all(Array.from({ length: inFlight }, (_, i) => slot(redlock, i, figures)));
const elapsedMs = performance.now() - began;
print(figures, elapsedMs, process.cpuUsage(cpuBegan));
await redlock.quit();
