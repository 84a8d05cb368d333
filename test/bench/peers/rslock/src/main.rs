// rslock-bench IN_FLIGHT SECONDS - lock + unlock cycles of rslock (crates.io), one line of figures.
//
// The masters are those of REDLOCK_MASTERS ("host:port,...").  test/bench/alternatives starts this.

use rslock::LockManager;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Figures {
    acquire_us: Vec<f64>,
    cycles: usize,
    errors: usize,
}

// Cycles on one name until the end.
async fn slot(manager: Arc<LockManager>, name: String, end: Instant) -> Figures {
    let mut figures = Figures::default();
    while Instant::now() < end {
        let began = Instant::now();
        match manager.lock(name.as_str(), TTL).await {
            Ok(lock) => {
                figures.acquire_us.push(began.elapsed().as_secs_f64() * 1e6);
                manager.unlock(&lock).await;
                figures.cycles += 1;
            }
            Err(_) => {
                figures.errors += 1;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    figures
}

async fn run(manager: &Arc<LockManager>, in_flight: usize, seconds: f64) -> Figures {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let slots: Vec<_> = (0..in_flight)
        .map(|i| tokio::spawn(slot(manager.clone(), format!("bench/{i}"), end)))
        .collect();
    let mut all = Figures::default();
    for slot in slots {
        let one = slot.await.expect("a slot ends");
        all.acquire_us.extend(one.acquire_us);
        all.cycles += one.cycles;
        all.errors += one.errors;
    }
    all.acquire_us.sort_by(f64::total_cmp);
    all
}

// The time that all threads of this process have run, in microseconds.
fn cpu_us() -> f64 {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) }, 0);
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    us(usage.ru_utime) + us(usage.ru_stime)
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    match sorted.len() {
        0 => 0.0,
        len => sorted[(len * percent).div_ceil(100) - 1],
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let in_flight: usize = args[1].parse().expect("IN_FLIGHT");
    let seconds: f64 = args[2].parse().expect("SECONDS");
    let masters = std::env::var("REDLOCK_MASTERS").expect("REDLOCK_MASTERS");
    let uris = masters.split(',').map(|place| format!("redis://{place}/")).collect();
    let manager = Arc::new(LockManager::new(uris));
    run(&manager, in_flight, seconds / 4.0).await; // Connects, and warms up.
    let (began, cpu_began) = (Instant::now(), cpu_us());
    let figures = run(&manager, in_flight, seconds).await;
    println!(
        "cycles_per_s={:.1} acquire_p50_us={:.1} acquire_p99_us={:.1} cpu_us_per_cycle={:.2} errors={}",
        figures.cycles as f64 / began.elapsed().as_secs_f64(),
        percentile(&figures.acquire_us, 50),
        percentile(&figures.acquire_us, 99),
        (cpu_us() - cpu_began) / figures.cycles.max(1) as f64,
        figures.errors
    );
}
