// clients.mjs - one ioredis connection for each master in REDLOCK_MASTERS ("host:port,...").
// A minority of them may be down.

import Redis from 'ioredis';
import { env } from 'node:process';

export async function connect(masters = env.REDLOCK_MASTERS ?? '') {
  const clients = masters.split(',').filter(Boolean).map((master) => {
    const colon = master.lastIndexOf(':');
    return new Redis({
      host: master.slice(0, colon),
      port: Number(master.slice(colon + 1)),
      lazyConnect: true,
      maxRetriesPerRequest: 1,
    });
  });
  if (clients.length === 0) throw new Error('REDLOCK_MASTERS is not set');
  for (const client of clients) client.on('error', () => {}); // It connects again by itself.
  const ended = await Promise.allSettled(clients.map((client) => client.connect()));
  const up = ended.filter((end) => end.status === 'fulfilled').length;
  if (2 * up <= clients.length) throw new Error(`only ${up} of ${clients.length} masters are up`);
  return clients;
}
