// The driver of rslock (Rust).

use std::io::{stdin, BufRead};
use std::time::Duration;

use rslock::{Lock, LockManager};

// It pauses for a random time below its delay, whose default is 200 ms.
const DELAY_MS: u64 = 200;
const MEAN_PAUSE_MS: u64 = DELAY_MS / 2;

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

// Its tokens are bytes, not text.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn answer(manager: &mut LockManager, locks: &mut Vec<Lock>, words: &[&str]) -> String {
    match words {
        ["lock", name, ttl, wait] => {
            let tries = 1 + number(wait) / MEAN_PAUSE_MS;
            manager.set_retry(tries as u32, Duration::from_millis(DELAY_MS));
            match manager.lock(*name, Duration::from_millis(number(ttl))).await {
                Ok(lock) => {
                    let text = format!("ok {} {} hex:{}", locks.len(), lock.validity_time, hex(&lock.val));
                    locks.push(lock);
                    text
                }
                Err(_) => "no".into(),
            }
        }
        ["extend", id, ttl] => {
            let id = number(id) as usize;
            manager.set_retry(1, Duration::from_millis(DELAY_MS));
            match manager.extend(&locks[id], Duration::from_millis(number(ttl))).await {
                Ok(lock) => {
                    let text = format!("ok {}", lock.validity_time);
                    locks[id] = lock;
                    text
                }
                Err(_) => "no".into(),
            }
        }
        // It tells nothing.
        ["unlock", id] => {
            manager.unlock(&locks[number(id) as usize]).await;
            "ok".into()
        }
        _ => "unsupported".into(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let places = std::env::args().skip(1).map(|place| format!("redis://{place}/"));
    let mut manager = LockManager::new(places.collect());
    let mut locks = Vec::new();
    for line in stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        println!("{}", answer(&mut manager, &mut locks, &words).await);
    }
}
