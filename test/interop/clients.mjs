// clients.mjs - one ioredis connection for each master in REDLOCK_MASTERS ("host:port,...").

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
  await Promise.all(clients.map((client) => client.connect()));
  return clients;
}
