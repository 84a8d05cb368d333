// Bench KIND IN_FLIGHT SECONDS - lock + unlock cycles of Redisson, one line of figures.
//
// KIND: redlock, a RedissonRedLock on all masters; one, an RLock on the first.  The masters are those
// of REDLOCK_MASTERS ("host:port,...").  Each slot is a thread.  test/bench/alternatives starts this.

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class Bench {
    static final long TTL_MS = 10000;
    static final long WAIT_MS = 10000; // Far more than an attempt takes, and than to connect takes.
    static final int CONNECT_TRIES = 10;
    static final long FAILED_PAUSE_MS = 1; // What fails is tried again after this pause.

    static class Figures {
        final List<Double> acquireUs = new ArrayList<>();
        long cycles = 0;
        long errors = 0;
    }

    final List<RedissonClient> clients = new ArrayList<>();

    // The slots connect when they begin, so that a master that is down does not stop the start.
    Bench(String[] places) {
        for (String place : places) {
            Config config = new Config();
            config.setLazyInitialization(true);
            config.useSingleServer().setAddress("redis://" + place);
            clients.add(Redisson.create(config));
        }
    }

    RLock lockOf(int slot) {
        RLock[] locks = clients.stream().map(client -> client.getLock("bench/" + slot)).toArray(RLock[]::new);
        return locks.length == 1 ? locks[0] : new RedissonRedLock(locks);
    }

    boolean cycle(int slot, Figures figures) throws InterruptedException {
        long began = System.nanoTime();
        RLock lock = lockOf(slot);
        try {
            if (!lock.tryLock(WAIT_MS, TTL_MS, TimeUnit.MILLISECONDS)) {
                return false;
            }
            figures.acquireUs.add((System.nanoTime() - began) / 1000.0);
            lock.unlock();
            return true;
        } catch (RuntimeException error) {
            return false;
        }
    }

    Figures slot(int slot, long endNs) throws InterruptedException {
        Figures figures = new Figures();
        while (System.nanoTime() < endNs) {
            if (cycle(slot, figures)) {
                figures.cycles++;
            } else {
                figures.errors++;
                Thread.sleep(FAILED_PAUSE_MS);
            }
        }
        return figures;
    }

    // The first attempts connect.  They take seconds, and may fail.
    void connect() throws InterruptedException {
        for (int i = 0; i < CONNECT_TRIES && !cycle(0, new Figures()); i++) {
            Thread.sleep(FAILED_PAUSE_MS);
        }
    }

    Figures run(int inFlight, double seconds) throws Exception {
        long endNs = System.nanoTime() + (long) (seconds * 1e9);
        ExecutorService threads = Executors.newFixedThreadPool(inFlight);
        List<Future<Figures>> slots = new ArrayList<>();
        for (int i = 0; i < inFlight; i++) {
            int slot = i;
            slots.add(threads.submit(() -> slot(slot, endNs)));
        }
        Figures sum = new Figures();
        for (Future<Figures> future : slots) {
            Figures one = future.get();
            sum.acquireUs.addAll(one.acquireUs);
            sum.cycles += one.cycles;
            sum.errors += one.errors;
        }
        threads.shutdown();
        return sum;
    }

    // The time that all threads of this process have run.
    static double cpuUs() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime() / 1000.0;
    }

    static double percentile(double[] sorted, int percent) {
        return sorted.length == 0 ? 0 : sorted[(sorted.length * percent + 99) / 100 - 1];
    }

    public static void main(String[] args) throws Exception {
        String[] places = System.getenv("REDLOCK_MASTERS").split(",");
        int inFlight = Integer.parseInt(args[1]);
        double seconds = Double.parseDouble(args[2]);
        Bench bench = new Bench(args[0].equals("one") ? Arrays.copyOf(places, 1) : places);
        bench.connect();
        bench.run(inFlight, seconds / 2); // Warms up, for which Java needs longer than others.
        long began = System.nanoTime();
        double cpuBegan = cpuUs();
        Figures figures = bench.run(inFlight, seconds);
        double elapsedS = (System.nanoTime() - began) / 1e9;
        double[] sorted = figures.acquireUs.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        System.out.printf(Locale.ROOT,
            "cycles_per_s=%.1f acquire_p50_us=%.1f acquire_p99_us=%.1f cpu_us_per_cycle=%.2f errors=%d%n",
            figures.cycles / elapsedS, percentile(sorted, 50), percentile(sorted, 99),
            (cpuUs() - cpuBegan) / Math.max(figures.cycles, 1), figures.errors);
        System.exit(0); // Redisson's threads would go on.
    }
}
